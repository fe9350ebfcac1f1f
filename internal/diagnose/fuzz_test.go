package diagnose

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/diagnose/worldsize"
	"github.com/gangrun/gangrun/internal/job"
)

// arrange distributes the lines of a text over the streams of a gang and ends its ranks, as seed decides.
func arrange(text string, seed uint64) job.Evidence {
	r := rand.New(rand.NewPCG(seed, 1))
	ranks := 1 + r.IntN(4)
	e := job.Evidence{Ranks: ranks}
	sources := []job.Source{job.SourceStdout, job.SourceStderr, job.SourceStderr, job.SourceKernel, job.SourceAgent}
	var l job.Line
	for i, t := range strings.Split(text, "\n") {
		if i == 0 || r.IntN(8) == 0 {
			l = job.Line{Source: sources[r.IntN(len(sources))], Rank: r.IntN(ranks+1) - 1}
			if l.Rank >= 0 {
				l.Host, l.File = host(l.Rank), job.LogName(l.Rank, string(l.Source))
			}
		}
		l.Line = i + 1
		l.Text = t
		if r.IntN(3) > 0 {
			l.Time = at(float64(i)).Add(time.Duration(r.IntN(5)) * time.Second)
		}
		e.Lines = append(e.Lines, l)
	}
	statuses := []job.ExitStatus{job.Exited, job.Exited, job.Signalled, job.Lost, job.Unstarted}
	for rank := range ranks {
		if r.IntN(5) > 0 {
			fault := []string{"", "", "it never called MPI_Finalize", text[:min(len(text), 20)]}[r.IntN(4)]
			e.Outcome.Exits = append(e.Outcome.Exits, job.Exit{Fault: fault, Aborted: r.IntN(9) == 0, Rank: rank, Host: host(rank), Status: statuses[r.IntN(len(statuses))], Code: r.IntN(256), Signal: r.IntN(40),
				Stopped: r.IntN(4) == 0, PID: 4711, Time: at(r.Float64() * 100)})
		}
	}
	return e
}

// shuffled interleaves the streams of e in another way. The lines of each stream keep their order.
func shuffled(e job.Evidence, seed uint64) job.Evidence {
	type key struct {
		source     job.Source
		rank       int
		host, file string
	}
	streams := map[key][]job.Line{}
	var keys []key
	for _, l := range e.Lines {
		k := key{l.Source, l.Rank, l.Host, l.File}
		if streams[k] == nil {
			keys = append(keys, k)
		}
		streams[k] = append(streams[k], l)
	}
	r := rand.New(rand.NewPCG(seed, 2))
	lines := make([]job.Line, 0, len(e.Lines))
	for len(keys) > 0 {
		i := r.IntN(len(keys))
		k := keys[i]
		lines = append(lines, streams[k][0])
		if streams[k] = streams[k][1:]; len(streams[k]) == 0 {
			keys = slices.Delete(keys, i, i+1)
		}
	}
	e.Lines = lines
	return e
}

func FuzzDiagnose(f *testing.F) {
	for i, s := range []string{"missing-file", "oom-killer", "xid-ecc", "peer-closed", "nccl-timeout", "argparse", "go-panic", "julia-syntax", "mpi-abort", "batch-oom"} {
		f.Add(strings.Join(samples[s].yes, "\n"), uint64(i))
	}
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for i, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data[:min(len(data), 4000)]), uint64(i))
	}
	// An exception without a word.
	f.Add("ERROR: \nStacktrace:\nERROR: \n", uint64(59))
	// A host without a name.
	f.Add("oom_kill event\ncgroup out-of\xf1memory handler\nsrun: error: \x1b: task 0: Out Of Memory", uint64(102))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		e := arrange(text, seed)
		before, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		c := Diagnose(e)
		if after, err := json.Marshal(e); err != nil || !bytes.Equal(before, after) {
			t.Fatal("Diagnose changed its argument")
		}
		sane(t, c)
		if again := Diagnose(e); !reflect.DeepEqual(again, c) {
			t.Errorf("not deterministic:\n%+v\n%+v", c, again)
		}
		if mixed := Diagnose(shuffled(e, seed)); !reflect.DeepEqual(mixed, c) {
			t.Errorf("the order of streams matters:\n%+v\n%+v", c, mixed)
		}
		worldsize.Find(e)
		for _, l := range e.Lines {
			sign.Cascade(l.Text)
		}
		for _, x := range e.Outcome.Exits {
			Unclear(x, e.Lines)
		}
	})
}

func FuzzReadLog(f *testing.F) {
	f.Add("rank-0003.err", []byte("a\nb\r\nc\rd\n\ne"))
	f.Add("x.log", []byte("[1,0]<stdout>:a\n[1,1]<stderr>:b\n"))
	f.Add("x.log", []byte("0: a\n1: b\n0: c\n1: d\n"))
	f.Add("x.log", []byte("[3 h2] a\n[1 h1] b\n[3 h2] c\n"))
	f.Add("a/rank.3/stderr", []byte(strings.Repeat("x", 9000)+"\r"))
	f.Add("", []byte("\r\n\r\x00\xff\n"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		lines, err := readLog(name, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		physical := bytes.Split(data, []byte("\n"))
		if len(physical[len(physical)-1]) == 0 {
			physical = physical[:len(physical)-1]
		}
		parts := map[int]int{} // by the number of a line, how many lines it was read as
		for _, l := range lines {
			parts[l.Line]++
		}
		if want := len(physical); want <= logtext.KeepLast && len(parts) != want {
			t.Errorf("%d lines have %d numbers", want, len(parts))
		}
		for i, l := range lines {
			if l.Line <= 0 || l.Line > len(physical) || i > 0 && l.Line < lines[i-1].Line {
				t.Fatalf("line %d has number %d of %d", i, l.Line, len(physical))
			}
			// A line with several tags of Open MPI is read as several lines with one number.
			if most := max(1, bytes.Count(physical[l.Line-1], []byte(">:"))); parts[l.Line] > most {
				t.Fatalf("line %d was read as %d lines: it has %d tags", l.Line, parts[l.Line], most)
			}
			if l.File != name || l.Rank < -1 || len(l.Text) > logtext.KeepBytes*3 || strings.ContainsAny(l.Text, "\r\n") {
				t.Fatalf("line %d: %+v", i, l)
			}
		}
		sane(t, Diagnose(job.Evidence{Lines: lines}))
	})
}
