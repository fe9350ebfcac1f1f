package faulthandler

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Thread is the stack of one Python thread.
type Thread struct {
	ID      uint64      // of pthread_self(3)
	Current bool        // the thread that ran the signal handler
	Frames  []job.Frame // innermost first
}

// The lines of a dump. Python 3.14 adds the name of the thread, in brackets.
var (
	threadLine = regexp.MustCompile(`^(Current thread|Thread) 0x([0-9a-f]+)(?: \[.*\])? \(most recent call first\):`)
	frameLine  = regexp.MustCompile(`^  File "?(.*?)"?, line (\d+|\?\?\?) in (.+)$`)
)

// Parse reads what Python has written after one signal. It skips lines that it does not know, such as
// that of a thread without a Python frame, and a last line that is not complete.
func Parse(dump []byte) []Thread {
	var threads []Thread
	for line := range strings.Lines(string(dump)) {
		line, complete := strings.CutSuffix(line, "\n")
		if !complete {
			break
		}
		if m := threadLine.FindStringSubmatch(line); m != nil {
			id, err := strconv.ParseUint(m[2], 16, 64)
			if err == nil {
				threads = append(threads, Thread{ID: id, Current: m[1] != "Thread"})
			}
			continue
		}
		if m := frameLine.FindStringSubmatch(line); m != nil && len(threads) > 0 {
			n, _ := strconv.Atoi(m[2]) // "???" if Python does not know: then 0
			last := &threads[len(threads)-1]
			last.Frames = append(last.Frames, job.Frame{Function: m[3], File: m[1], Line: n})
		}
	}
	return threads
}
