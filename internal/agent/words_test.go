package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/report"
	"github.com/gangrun/gangrun/internal/wire"
)

// heard is who gets output.
type heard struct {
	grpc.ServerStream
	ctx   context.Context
	data  map[int32]string
	ended map[int32]bool
	got   chan struct{} // told of each piece
}

func (h *heard) Context() context.Context { return h.ctx }

func (h *heard) Send(r *wire.OutputReply) error {
	h.data[r.Rank] += string(r.Data)
	h.ended[r.Rank] = r.End
	if len(r.Data) > 0 {
		h.got <- struct{}{}
	}
	return nil
}

// What mpirun says, or a daemon, is told as it comes and from where it is wanted; where
// its log is gone the ranks' output comes all the same.
func TestWords(t *testing.T) {
	for name, c := range map[string]struct {
		mpirun *wire.Mpirun
		file   string
		offset int64
		gone   bool
		want   string
	}{
		"mpirun":     {mpirun: &wire.Mpirun{}, file: "mpirun.log", want: "first\nsecond\n"},
		"a daemon":   {file: "daemon-h2.log", want: "first\nsecond\n"},
		"the rest":   {file: "daemon-h2.log", offset: 3, want: "st\nsecond\n"},
		"of nothing": {file: "daemon-h2.log", offset: 13},
		"gone":       {file: "daemon-h2.log", gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			g := newGang("h2", &wire.Start{Gang: "r/1", LogDir: []byte(dir), Mpirun: c.mpirun}, nil, nil, nil, &report.Queue{})
			defer g.kernel.Close()
			words := newWords(g)
			g.ompi = &openMPI{words: words}
			g.ranks = []*rank{{number: 3, out: output.NewLog(output.Options{Rank: 3, Path: dir + "/out", Grew: &g.bell}), err: output.NewLog(output.Options{Rank: 3, Stderr: true, Path: dir + "/err", Grew: &g.bell})}}
			close(g.ready)
			if words.Path != filepath.Join(dir, c.file) {
				t.Errorf("the log is %q, want %q", words.Path, c.file)
			}
			s := newServer(nil, nil, &line{})
			s.gangs["r/1"] = g
			say := func(of *output.Stream, text string) {
				log, err := os.OpenFile(of.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
				if err == nil {
					_, err = log.WriteString(text)
				}
				if err != nil || log.Close() != nil {
					t.Fatal(err)
				}
				of.Grow(len(text))
			}
			say(words, "first\n")
			if c.gone {
				if err := os.Remove(words.Path); err != nil {
					t.Fatal(err)
				}
			}
			to := &heard{ctx: t.Context(), data: map[int32]string{}, ended: map[int32]bool{}, got: make(chan struct{}, 10)}
			ended := make(chan error, 1)
			go func() {
				ended <- s.Output(&wire.OutputRequest{Gang: "r/1", Ranks: []int32{3, output.RuntimeRank}, Out: []int64{0, c.offset}}, to)
			}()
			if c.offset < 6 && !c.gone {
				<-to.got
			}
			if !c.gone {
				say(words, "second\n")
			}
			say(g.ranks[0].out, "of a rank\n")
			for _, of := range []*output.Stream{words, g.ranks[0].out, g.ranks[0].err} {
				of.Seal()
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if got := to.data[output.RuntimeRank]; got != c.want || to.ended[output.RuntimeRank] == c.gone {
				t.Errorf("told %q and its end: %t; want %q", got, to.ended[output.RuntimeRank], c.want)
			}
			if to.data[3] != "of a rank\n" || !to.ended[3] {
				t.Errorf("the rank's output is %q, ended %t", to.data[3], to.ended[3])
			}
		})
	}
}

// A gang that is not started by Open MPI has none.
func TestNoWords(t *testing.T) {
	g := newGang("h1", &wire.Start{}, nil, nil, nil, &report.Queue{})
	defer g.kernel.Close()
	close(g.ready)
	if followers, err := g.follow(t.Context(), &wire.OutputRequest{Ranks: []int32{output.RuntimeRank}}); err != nil || len(followers) > 0 {
		t.Errorf("got %v, %v", followers, err)
	}
}
