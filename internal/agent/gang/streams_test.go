package gang

import (
	"os"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/report"
	"github.com/gangrun/gangrun/internal/wire"
)

// logOnly is a runtime that only has a log.
type logOnly struct {
	Runtime
	log *output.Stream
}

func (l logOnly) Log() *output.Stream { return l.log }

// prepared returns a gang that is ready. It has rank 3, whose process does not exist.
func prepared(t *testing.T) *Gang {
	t.Helper()
	dir := t.TempDir()
	g := New(Config{Host: "h2", Start: &wire.Start{Gang: "r/1", LogDir: []byte(dir)}, Reports: &report.Queue{}})
	t.Cleanup(g.kernel.Close)
	g.ranks = []*Rank{{
		number: 3,
		out:    output.NewLog(output.Options{Rank: 3, Path: dir + "/out", Grew: &g.grew}),
		err:    output.NewLog(output.Options{Rank: 3, Stderr: true, Path: dir + "/err", Grew: &g.grew}),
	}}
	close(g.ready)
	return g
}

// TestCopyOutput checks that the output of a runtime is copied as it comes, from the requested offset on. If its log
// is gone, the output of the ranks must still be copied.
func TestCopyOutput(t *testing.T) {
	for name, c := range map[string]struct {
		offset int64
		gone   bool
		want   string
	}{
		"all":        {want: "first\nsecond\n"},
		"the rest":   {offset: 3, want: "st\nsecond\n"},
		"of nothing": {offset: 13},
		"gone":       {gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := prepared(t)
			log := output.NewLog(output.Options{Rank: output.RuntimeRank, Path: t.TempDir() + "/log", Grew: &g.grew})
			g.runtime = logOnly{log: log}
			write := func(s *output.Stream, text string) {
				file, err := os.OpenFile(s.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
				if err == nil {
					_, err = file.WriteString(text)
				}
				if err != nil || file.Close() != nil {
					t.Fatal(err)
				}
				s.Grow(len(text))
			}
			write(log, "first\n")
			if c.gone {
				if err := os.Remove(log.Path); err != nil {
					t.Fatal(err)
				}
			}
			data, ends := map[int32]string{}, map[int32]bool{}
			got := make(chan struct{}, 10)
			copied := make(chan error, 1)
			go func() {
				want := &wire.OutputRequest{Gang: "r/1", Ranks: []int32{3, output.RuntimeRank}, Out: []int64{0, c.offset}}
				copied <- g.CopyOutput(t.Context(), want, func(r *wire.OutputReply) error {
					data[r.Rank] += string(r.Data)
					ends[r.Rank] = r.End
					if len(r.Data) > 0 {
						got <- struct{}{}
					}
					return nil
				})
			}()
			if c.offset < 6 && !c.gone {
				<-got
			}
			if !c.gone {
				write(log, "second\n")
			}
			write(g.ranks[0].out, "of a rank\n")
			for _, s := range []*output.Stream{log, g.ranks[0].out, g.ranks[0].err} {
				s.Seal()
			}
			if err := <-copied; err != nil {
				t.Fatal(err)
			}
			if have := data[output.RuntimeRank]; have != c.want || ends[output.RuntimeRank] == c.gone {
				t.Errorf("got %q and its end: %t; want %q", have, ends[output.RuntimeRank], c.want)
			}
			if data[3] != "of a rank\n" || !ends[3] {
				t.Errorf("the rank's output is %q, ended %t", data[3], ends[3])
			}
		})
	}
}

// TestCopyOutputWithoutRuntime checks that a gang whose ranks were started without a runtime has no output of a
// runtime.
func TestCopyOutputWithoutRuntime(t *testing.T) {
	g := prepared(t)
	err := g.CopyOutput(t.Context(), &wire.OutputRequest{Ranks: []int32{output.RuntimeRank}}, func(*wire.OutputReply) error {
		t.Error("something was sent")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
