package agent

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// kernel watches what the host's kernel says of processes that it killed: its
// log where this user may read it, and its count of OOM kills.
type kernel struct {
	log   int // descriptor of /dev/kmsg at its end, or -1
	kills int64
}

func watchKernel() *kernel {
	k := &kernel{log: -1, kills: oomKills()}
	if fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		if _, err := unix.Seek(fd, 0, unix.SEEK_END); err == nil {
			k.log = fd
		} else {
			_ = unix.Close(fd)
		}
	}
	return k
}

func (k *kernel) close() {
	if k.log >= 0 {
		_ = unix.Close(k.log)
	}
}

// lines returns what the kernel has said since the last call that may bear on
// a killed process, and whether its count of OOM kills has risen.
func (k *kernel) lines(host string) []job.Line {
	var lines []job.Line
	say := func(text string) {
		lines = append(lines, job.Line{Source: job.SourceKernel, Host: host, Rank: -1, File: "/dev/kmsg", Time: time.Now(), Text: text})
	}
	buffer := make([]byte, 8<<10) // a record is at most 1 KiB and its header
	for k.log >= 0 {
		n, err := unix.Read(k.log, buffer)
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EINTR) {
			continue // records were overwritten; the next read goes on behind them
		}
		if err != nil || n <= 0 {
			break
		}
		if text, ok := kernelRecord(string(buffer[:n])); ok {
			say(text)
		}
	}
	if now := oomKills(); now > k.kills {
		say(fmt.Sprintf("oom_kill count rose by %d during the attempt", now-k.kills))
		lines[len(lines)-1].File = "/proc/vmstat"
		k.kills = now
	}
	return lines
}

// kernelRecord takes the text of a /dev/kmsg record
// ("priority,sequence,microseconds,flags;text\n KEY=value\n") that tells of a
// killed process.
func kernelRecord(record string) (string, bool) {
	_, text, ok := strings.Cut(record, ";")
	if !ok {
		return "", false
	}
	text, _, _ = strings.Cut(text, "\n")
	for _, word := range []string{"Killed process", "oom-kill:", "Out of memory", "segfault at", "general protection", "NVRM: Xid"} {
		if strings.Contains(text, word) {
			return strings.ToValidUTF8(text, "\uFFFD"), true
		}
	}
	return "", false
}

// oomKills reads the host's count of OOM kills (oom_kill of /proc/vmstat, Linux
// 4.13); 0 where there is none.
func oomKills() int64 {
	data, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}
