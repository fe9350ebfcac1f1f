// Package logtext reads logs of any size, and finds the rank to which each line belongs. It takes the rank from
// the name of the log, or from the tags that launchers write before lines.
package logtext

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// Limits on what Read keeps of a log. It keeps the last lines, and earlier lines around signs of failure.
const (
	KeepLast  = 4000    // number of last lines
	KeepEarly = 4000    // largest number of earlier lines
	KeepBytes = 8 << 10 // bytes of a line; the rest of a longer line is cut off
	Ahead     = 40      // number of lines before a sign
	Behind    = 60      // number of lines after a sign, so that a traceback is whole
)

// Read reads a log in bounded memory. telling reports whether a line may be a sign of failure, or the beginning
// of such a sign. If the name of the log does not have the rank, Read takes the rank of each line from the tag
// that a launcher has written before the line. It knows the tags of mpirun --tag-output, torch, srun -l, hydra
// -l, pdsh, kubectl and gangrun itself. If the rank is not known, Read sets it to -1.
func Read(o Origin, r io.Reader, telling func(string) bool) ([]job.Line, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	k := keeper{telling: telling}
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
	lines := k.lines()
	for i := range lines {
		lines[i].File, lines[i].Source, lines[i].Rank, lines[i].Host = o.Name, o.Source, o.Rank, o.Host
	}
	if o.Source != job.SourceKernel && o.Source != job.SourceErrorFile {
		unnumber(lines)
		unstamp(lines)
	}
	if o.Rank >= 0 && o.Source != job.SourceErrorFile && several(lines) {
		for i := range lines {
			lines[i].Rank = -1
		}
		o.Rank = -1
	}
	if o.Rank < 0 && o.Source != job.SourceKernel {
		lines = unprefix(lines)
	}
	date(lines)
	return lines, nil
}

// drawing is a line as a terminal shows it: text after a carriage return replaces the text before it. It has at most
// KeepBytes bytes.
type drawing struct {
	text     []byte
	returned bool
}

func (d *drawing) add(part []byte) {
	if !d.returned && bytes.IndexByte(part, '\r') < 0 { // as in most lines
		part = bytes.TrimSuffix(part, []byte{'\n'})
		d.text = append(d.text, part[:min(len(part), KeepBytes-len(d.text))]...)
		return
	}
	for _, c := range part {
		switch {
		case c == '\n':
		case c == '\r':
			d.returned = true
		case d.returned:
			d.returned = false
			d.text = append(d.text[:drawnTag(d.text, c)], c)
		case len(d.text) < KeepBytes:
			d.text = append(d.text, c)
		}
	}
}

// lineTag matches the tag of a launcher. A program that begins its output with a carriage return does not overwrite the
// tag.
var lineTag = textmatch.New(`^(?:\[\d{1,5}\]:? |\[(?:rank|default)\d+\]: ?| *\d{1,5}: |\[\d+,\d+\]<std\w+>: ?|[A-Za-z][\w.-]*\d[\w.-]*: ?$|[\w.-]*[-_]\d+ +\| ?$)`)

// drawnTag returns the length of the tag at the beginning of a text. The tag stays if next, the first byte of new text,
// is written over the text. It returns 0 if the new text itself may begin with a tag.
func drawnTag(text []byte, next byte) int {
	if next == '[' {
		return 0
	}
	if at := lineTag.FindStringIndex(string(text[:min(len(text), dateBytes)])); at != nil {
		return at[1]
	}
	return 0
}

func (d *drawing) take() string {
	text := string(d.text)
	if !utf8.Valid(d.text) {
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	d.text, d.returned = d.text[:0], false
	return text
}

// kept is a line of the ring. keep is true if the line must be kept after it has left the ring.
type kept struct {
	number int
	text   string
	keep   bool
}

// keeper collects the lines of a log that are kept.
type keeper struct {
	telling func(string) bool

	early []kept
	ring  []kept
	next  int // the index of the oldest line of the ring, once it is full
	after int // how many of the next lines must be kept because they follow a sign
}

func (k *keeper) add(number int, text string) {
	l := kept{number, text, k.after > 0}
	k.after--
	if k.telling(text) {
		l.keep = true
		k.after = Behind
		for i := 1; i <= min(Ahead, len(k.ring)); i++ {
			k.ring[(k.next-i+len(k.ring))%len(k.ring)].keep = true
		}
	}
	if len(k.ring) < KeepLast {
		k.ring = append(k.ring, l)
		return
	}
	if old := k.ring[k.next]; old.keep && len(k.early) < KeepEarly {
		k.early = append(k.early, old)
	}
	k.ring[k.next] = l
	k.next = (k.next + 1) % KeepLast
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
