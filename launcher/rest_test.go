package launcher

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// TestRest checks that gangrun fetches what a dead agent has left. It does so at once if the host answers, and
// otherwise while later gangs run.
func TestRest(t *testing.T) {
	const out, errs = "rank-0001.out", "rank-0001.err"
	left := func(texts map[string]string, whole bool) func(agents.RestRequest) error {
		return func(want agents.RestRequest) error {
			for _, name := range slices.Sorted(maps.Keys(texts)) {
				if err := want.Take(name, whole, strings.NewReader(texts[name])); err != nil {
					return err
				}
			}
			return nil
		}
	}
	broken := func(want agents.RestRequest) error {
		return want.Take(out, true, io.MultiReader(strings.NewReader("and "), iotest.ErrReader(errors.New("cut"))))
	}
	const cut = "output from h2 is missing: only "
	for name, c := range map[string]struct {
		trouble error
		runs    int // number of gangs; the first one loses h2
		rests   []func(agents.RestRequest) error
		other   string // what another process writes to the log before that
		notes   []string
		log     string
		fault   bool
		last    bool // the agent has left nothing else
	}{
		"whole": {
			trouble: agents.ErrGone, runs: 1, rests: []func(agents.RestRequest) error{left(map[string]string{out: "and more\n", errs: ""}, true)}, last: true,
			notes: []string{"the last 9 bytes that its ranks had printed have been fetched from h2, and nothing of it is missing"}, log: "hello\nand more\n",
		},
		"whole, nothing more": {
			trouble: agents.ErrGone, runs: 1, rests: []func(agents.RestRequest) error{left(map[string]string{out: "", errs: ""}, true)}, last: true, log: "hello\n",
		},
		"cut off there, too": {
			trouble: agents.ErrGone, runs: 1, rests: []func(agents.RestRequest) error{left(map[string]string{out: "and more\n", errs: ""}, false)}, last: true, fault: true,
			notes: []string{cut + "15 bytes of rank 1 arrived: the agent was killed or has ended; h2 has no more of it"}, log: "hello\nand more\n",
		},
		"only one of them is there": {
			trouble: agents.ErrGone, runs: 1, rests: []func(agents.RestRequest) error{left(map[string]string{out: "and more\n"}, true)}, last: true, fault: true,
			notes: []string{cut + "15 bytes of rank 1 arrived: the agent was killed or has ended; h2 has no more of it"}, log: "hello\nand more\n",
		},
		"what was not asked for": {
			trouble: agents.ErrGone, runs: 1, rests: []func(agents.RestRequest) error{left(map[string]string{"rank-0000.out": "x"}, true)}, fault: true, last: true,
			notes: []string{cut + "6 bytes of rank 1 arrived: the agent was killed or has ended; the rest is kept for 7 days on h2 in /tmp/agent/logs/r/1, if it is still there (it could not be fetched: \"rank-0000.out\" was not asked for)"}, log: "hello\n",
		},
		"comes in pieces": {
			trouble: agents.ErrGone, runs: 2, rests: []func(agents.RestRequest) error{broken, left(map[string]string{out: "more\n", errs: ""}, true)}, fault: true, last: true,
			notes: []string{
				cut + "10 bytes of rank 1 arrived: the agent was killed or has ended; the rest is kept for 7 days on h2 in /tmp/agent/logs/r/1, if it is still there (it could not be fetched: cut)",
				"5 more bytes that the ranks on h2 had printed in attempt 1 have been fetched, and nothing of it is missing now",
			}, log: "hello\nand more\n",
		},
		"away at first": {
			runs: 2, rests: []func(agents.RestRequest) error{left(map[string]string{out: "and more\n", errs: ""}, true)}, fault: true, last: true,
			notes: []string{
				cut + "6 bytes of rank 1 arrived: the line broke; the rest is kept for 7 days on h2 in /tmp/agent/logs/r/1, if it is still there",
				"9 more bytes that the ranks on h2 had printed in attempt 1 have been fetched, and nothing of it is missing now",
			}, log: "hello\nand more\n",
		},
		"away, and for good": {
			runs: 3, rests: []func(agents.RestRequest) error{func(agents.RestRequest) error { return errors.New("no route to host") }, left(map[string]string{out: "and more\n"}, false)}, fault: true, last: true,
			notes: []string{
				cut + "6 bytes of rank 1 arrived: the line broke; the rest is kept for 7 days on h2 in /tmp/agent/logs/r/1, if it is still there",
				"9 more bytes that the ranks on h2 had printed in attempt 1 have been fetched; the rest of their output is not there",
			}, log: "hello\nand more\n",
		},
		"another has written": {
			trouble: agents.ErrGone, runs: 1, rests: []func(agents.RestRequest) error{left(map[string]string{out: "and more\n"}, true)}, other: "x", fault: true, last: true,
			notes: []string{cut + "6 bytes of rank 1 arrived: the agent was killed or has ended; the rest is kept for 7 days on h2 in /tmp/agent/logs/r/1, if it is still there (it could not be fetched: LOG has 7 bytes, and not the 6 that have come)"}, log: "hello\nx",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hosts := fourHosts()[:2]
				dir := t.TempDir()
				log := filepath.Join(dir, "1", out)
				var mu sync.Mutex
				asked, gangs := 0, 0
				fake := &talkers{trouble: c.trouble}
				fake.rest = func(want agents.RestRequest) error {
					mu.Lock()
					defer mu.Unlock()
					if size := want.Have[out]; want.Gang != "r/1" || size < 6 || size != fileSize(t, log) || want.Last != c.last {
						t.Errorf("asked for %+v", want)
					}
					if c.other != "" {
						f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
						if err == nil {
							_, err = f.WriteString(c.other)
							err = errors.Join(err, f.Close())
						}
						if err != nil {
							t.Error(err)
						}
					}
					rest := c.rests[min(asked, len(c.rests)-1)]
					asked++
					return rest(want)
				}
				fake.output = func(host string, to wire.Agent_OutputServer) error {
					mu.Lock()
					first := gangs == 1
					mu.Unlock()
					if host == "h2" && first {
						if err := say(host, to, "hello\n", 0); err != nil {
							return err
						}
						return status.Error(codes.Unavailable, "the line broke")
					}
					return say(host, to, "hello\n", 2)
				}
				l := New(Options{Dialer: fake, Hosts: hosts, HostTimeout: time.Minute})
				l.logs.RetryEvery = time.Hour
				defer func() {
					if err := l.Close(); err != nil {
						t.Error(err)
					}
				}()
				var notes []string
				for ; gangs < c.runs; fake.trouble = nil {
					mu.Lock()
					gangs++
					number := gangs
					mu.Unlock()
					a := job.Attempt{Run: "r", Number: number, Command: []string{"true"}, LogDir: filepath.Join(dir, string(rune('0'+number))), MPI: job.MPINone,
						Placement: job.Placement{Hosts: hosts, Ranks: []job.Rank{{Rank: 0, Host: "h1"}, {Rank: 1, Host: "h2"}}}}
					if err := os.Mkdir(a.LogDir, 0o755); err != nil {
						t.Fatal(err)
					}
					o, err := l.Run(t.Context(), a, func(e job.Event) {
						mu.Lock()
						defer mu.Unlock()
						if e.Kind == job.KindNote {
							notes = append(notes, strings.ReplaceAll(e.Text, log, "LOG"))
							if e.Host != "h2" || e.Attempt != 1 {
								t.Errorf("%q is of attempt %d on %s", e.Text, e.Attempt, e.Host)
							}
						}
					})
					if err != nil {
						t.Fatal(err)
					}
					if good := number > 1 || !c.fault; o.Good(2) != good {
						t.Errorf("gang %d ended well: %t, want %t: %+v", number, o.Good(2), good, o)
					}
				}
				if !slices.Equal(notes, c.notes) {
					t.Errorf("noted %q, want %q", notes, c.notes)
				}
				if text, err := os.ReadFile(log); err != nil || string(text) != c.log {
					t.Errorf("the log holds %q, %v; want %q", text, err, c.log)
				}
				if want := max(len(c.rests), 1); asked != want {
					t.Errorf("asked %d times, want %d", asked, want)
				}
			})
		})
	}
}

func fileSize(t *testing.T, path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		t.Error(err)
		return 0
	}
	return info.Size()
}
