package screen

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestEachRanksText checks that the lines of each rank can be restored from what a pipe got, byte for byte, whatever
// the order of writes, messages and pauses is.
func TestEachRanksText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ranks = 3
		var b bytes.Buffer
		s := New(Options{Ranks: ranks, Prefix: true, Out: Stream{W: &b}, Err: Stream{W: &b}})
		var sent [ranks]string
		now := time.Time{}
		ok := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				now = now.Add(time.Second)
				ok(s.Flush(now))
			case 1:
				ok(s.Output(0, "", true, []byte("other\n")))
			default:
				rank := rapid.IntRange(0, ranks-1).Draw(t, "rank")
				text := rapid.StringOfN(rapid.SampledFrom([]rune("ab é界\t\n")), 0, 12, -1).Draw(t, "text")
				text = strings.ReplaceAll(text, "b", strings.Repeat("b", rapid.SampledFrom([]int{1, 1, 1, pieceSize}).Draw(t, "b")))
				sent[rank] += text
				for text != "" { // the text is divided anywhere, even within a character
					n := rapid.IntRange(1, len(text)).Draw(t, "cut")
					ok(s.Output(rank, "", false, []byte(text[:n])))
					text = text[n:]
				}
			}
		}
		ok(s.Close())

		var got [ranks][]string
		for line := range strings.Lines(b.String()) {
			line, whole := strings.CutSuffix(line, "\n")
			if !whole {
				t.Fatalf("the line %q is not ended", line)
			}
			found := line == "[0]! other"
			for rank := range ranks {
				if line == fmt.Sprintf("[%d]", rank) {
					got[rank], found = append(got[rank], ""), true
				}
				if text, ok := strings.CutPrefix(line, fmt.Sprintf("[%d]  ", rank)); ok {
					got[rank], found = append(got[rank], text), true
				}
				if text, ok := strings.CutPrefix(line, fmt.Sprintf("[%d]+ ", rank)); ok && len(got[rank]) > 0 {
					got[rank][len(got[rank])-1] += text
					found = true
				}
			}
			if !found {
				t.Fatalf("line %.80q", line)
			}
		}
		for rank := range ranks {
			want := strings.Split(strings.TrimSuffix(sent[rank], "\n"), "\n")
			if sent[rank] == "" {
				want = nil
			}
			if fmt.Sprintf("%q", got[rank]) != fmt.Sprintf("%q", want) {
				t.Fatalf("rank %d: got %.200q, want %.200q", rank, got[rank], want)
			}
		}
	})
}

// TestTerminalKeepsLines checks that a terminal shows exactly the ended lines in order above the live rows. After
// Close, it must show nothing else.
func TestTerminalKeepsLines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const ranks = 4
		e := newTerminal(t, 30, 14)
		d := newDesk(t, Options{Ranks: ranks, Prefix: true, Out: e.stream(true), Err: e.stream(true)})
		var ended []string
		var line [ranks]string
		bottom := ""
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			rank := rapid.IntRange(0, ranks-1).Draw(rt, "rank")
			text := rapid.StringMatching("[a-z]{1,20}").Draw(rt, "text")
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				d.do(wait(300 * time.Millisecond))
			case 1:
				bottom = rapid.SampledFrom([]string{"", "WORKING", strings.Repeat("WORK ", 20)}).Draw(rt, "status")
				d.do(status(bottom))
			case 2:
				d.do(say(text))
				ended = append(ended, "gangrun: "+text)
			case 3:
				d.do(out(rank, "\r"+text))
				line[rank] = text
			case 4:
				text = text[:min(len(text), 25-len(line[rank]))]
				d.do(out(rank, text))
				line[rank] += text
			case 5:
				d.do(out(rank, "\n"))
				if line[rank] == "" {
					ended = append(ended, fmt.Sprintf("[%d]", rank))
				} else {
					ended = append(ended, fmt.Sprintf("[%d]  %s", rank, line[rank]))
				}
				line[rank] = ""
			}
			shows := strings.Split(strings.ReplaceAll(e.show(), "▏", ""), "\n")
			if len(shows) < len(ended) || fmt.Sprint(shows[:len(ended)]) != fmt.Sprint(ended) {
				rt.Fatalf("the terminal shows\n%s\nnot\n%s", e.show(), strings.Join(ended, "\n"))
			}
			rows := shows[len(ended):]
			if bottom != "" {
				if last := rows[len(rows)-1]; !strings.HasPrefix(last, "WORK") {
					rt.Fatalf("the status is not the last of %q", rows)
				}
				rows = rows[:len(rows)-1]
			}
			for _, row := range rows {
				if row != "" && !strings.HasPrefix(row, "[") {
					rt.Fatalf("row %q", row)
				}
			}
		}
		d.do(closing())
		for rank := range ranks {
			if line[rank] != "" {
				ended = append(ended, fmt.Sprintf("[%d]  %s", rank, line[rank]))
			}
		}
		if got, want := e.show(), strings.Join(append(ended, "▏"), "\n"); got != want {
			rt.Fatalf("closed, the terminal shows\n%s\nnot\n%s", got, want)
		}
	})
}
