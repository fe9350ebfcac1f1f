package diagnose

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// What ReadLog keeps of a log of any size: the last lines, and earlier lines around signs of failure.
// Longer lines are cut.
const (
	keepLast  = 4000 // lines
	keepEarly = 4000 // lines
	keepBytes = 8 << 10
	ahead     = 40 // lines before a sign
	behind    = 60 // lines after it, so that a traceback is whole
)

// ReadLog reads a log for Diagnose, in bounded memory. It takes rank and stream from the name of
// the log if it has them (rank-0003.err, rank.3/stderr). Otherwise it takes them from the tags that
// launchers write before lines: mpirun (--tag-output), torch, srun -l, hydra -l and gangrun itself.
// A rank that is not known is -1.
func ReadLog(name string, r io.Reader) ([]job.Line, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var k keeper
	var d drawing
	for number, open := 1, false; ; {
		part, err := in.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !full && err != io.EOF {
			return nil, err
		}
		d.add(part)
		open = open || len(part) > 0
		if open && !full {
			k.add(number, d.take())
			number++
			open = false
		}
		if err == io.EOF {
			break
		}
	}
	rank, source := fromName(name)
	lines := k.lines()
	for i := range lines {
		lines[i].File, lines[i].Source, lines[i].Rank = name, source, rank
	}
	if rank < 0 {
		unprefix(lines)
	}
	return lines, nil
}

// drawing is a line as a terminal would show it: text after a carriage return replaces the text
// before it. It has at most keepBytes bytes.
type drawing struct {
	text     []byte
	returned bool
}

func (d *drawing) add(part []byte) {
	for _, c := range part {
		switch {
		case c == '\n':
		case c == '\r':
			d.returned = true
		case d.returned:
			d.returned = false
			d.text = append(d.text[:0], c)
		case len(d.text) < keepBytes:
			d.text = append(d.text, c)
		}
	}
}

func (d *drawing) take() string {
	text := strings.ToValidUTF8(string(d.text), "\ufffd")
	d.text, d.returned = d.text[:0], false
	return text
}

// kept is a line that may have to be kept after it left the ring.
type kept struct {
	number int
	text   string
	keep   bool
}

// keeper holds the lines of a log that are kept.
type keeper struct {
	early []kept
	ring  []kept
	next  int // the oldest line of the ring, once it is full
	after int // lines still to be kept that follow a sign
}

func (k *keeper) add(number int, text string) {
	l := kept{number, text, k.after > 0}
	k.after--
	if telling(text) {
		l.keep = true
		k.after = behind
		for i := 1; i <= min(ahead, len(k.ring)); i++ {
			k.ring[(k.next-i+len(k.ring))%len(k.ring)].keep = true
		}
	}
	if len(k.ring) < keepLast {
		k.ring = append(k.ring, l)
		return
	}
	if old := k.ring[k.next]; old.keep && len(k.early) < keepEarly {
		k.early = append(k.early, old)
	}
	k.ring[k.next] = l
	k.next = (k.next + 1) % keepLast
}

func (k *keeper) lines() []job.Line {
	out := make([]job.Line, 0, len(k.early)+len(k.ring))
	for _, part := range [][]kept{k.early, k.ring[k.next:], k.ring[:k.next]} {
		for _, l := range part {
			out = append(out, job.Line{Line: l.number, Text: l.text})
		}
	}
	return out
}

// telling reports whether a line may be a sign, or begin one.
func telling(text string) bool {
	return rules.Candidate(text) || len(reporters.Find(text, nil)) > 0 || len(beginnings.Find(text, nil)) > 0 || errorLine(text)
}

// beginnings are the words with which exceptions announce themselves.
var beginnings = func() *textmatch.Index {
	x := &textmatch.Index{}
	for i, text := range []string{"traceback (most recent call last)", "terminate called", "terminating ", "panicked at", "panic: ", "fatal error: ",
		"error: loaderror", "fortran runtime error", "forrtl: ", "root cause (first"} {
		x.Add(text, i)
	}
	return x
}()
