package faulthandler

import (
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/pattern"
)

// Thread is the stack of one Python thread.
type Thread struct {
	ID      uint64      // the result of pthread_self(3)
	Current bool        // true for the thread that ran the signal handler
	Frames  []job.Frame // innermost first
}

// The lines of a dump. Python 3.14 adds the name of the thread in brackets.
var (
	threadLine = pattern.New(`^(Current thread|Thread) 0x([0-9a-f]+)(?: \[.*\])? \(most recent call first\):`)
	frameLine  = pattern.New(`^  File "?(.*?)"?, line (\d+|\?\?\?) in (.+)$`)
)

// Parse reads what a Python process has written after one signal. It skips lines that it does not know, such
// as the line of a thread without a Python frame, and an incomplete last line.
func Parse(dump []byte) []Thread {
	var threads []Thread
	for line := range strings.Lines(string(dump)) {
		line, complete := strings.CutSuffix(line, "\n")
		if !complete {
			break
		}
		if m := threadLine().FindStringSubmatch(line); m != nil {
			id, err := strconv.ParseUint(m[2], 16, 64)
			if err == nil {
				threads = append(threads, Thread{ID: id, Current: m[1] != "Thread"})
			}
			continue
		}
		if m := frameLine().FindStringSubmatch(line); m != nil && len(threads) > 0 {
			n, _ := strconv.Atoi(m[2]) // Python writes "???" if it does not know the number; n is then 0
			last := &threads[len(threads)-1]
			last.Frames = append(last.Frames, job.Frame{Function: m[3], File: m[1], Line: n})
		}
	}
	return threads
}
