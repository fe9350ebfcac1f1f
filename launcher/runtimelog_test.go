package launcher

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// TestRuntimeLog checks that the output of mpirun and of Open MPI's daemons gets into files beside the logs of the
// ranks. A gang may succeed without this output.
func TestRuntimeLog(t *testing.T) {
	words := func(to wire.Agent_OutputServer, text string, end bool) error {
		return to.Send(&wire.OutputReply{Rank: -1, Data: []byte(text), End: end})
	}
	all := func(host string, to wire.Agent_OutputServer) error {
		return errors.Join(words(to, host+" says\n", false), words(to, "", true), say(host, to, "hello\n", 2))
	}
	for name, c := range map[string]struct {
		before  map[string]string // files of the attempt that exist before
		output  func(host string, to wire.Agent_OutputServer) error
		want    map[string]string
		offsets map[string]int64 // the offsets that must be requested
		note    string
	}{
		"all of it": {output: all, want: map[string]string{"mpirun.log": "h1 says\n", "daemon-h2.log": "h2 says\n"}},
		"what an earlier controller has not": {
			before: map[string]string{"daemon-h2.log": "before\n"}, output: all, offsets: map[string]int64{"h2": 7},
			want: map[string]string{"mpirun.log": "h1 says\n", "daemon-h2.log": "before\nh2 says\n"},
		},
		"nothing was said": {
			output: func(host string, to wire.Agent_OutputServer) error {
				return errors.Join(words(to, "", true), say(host, to, "hello\n", 2))
			},
			want: map[string]string{"mpirun.log": "", "daemon-h2.log": ""},
		},
		"it is not Open MPI's": {
			output: func(host string, to wire.Agent_OutputServer) error { return say(host, to, "hello\n", 2) },
			want:   map[string]string{},
		},
		"it breaks off": {
			output: func(host string, to wire.Agent_OutputServer) error {
				return errors.Join(words(to, host+" says\n", host == "h1"), say(host, to, "hello\n", 2))
			},
			want: map[string]string{"mpirun.log": "h1 says\n", "daemon-h2.log": "h2 says\n"},
			note: "h2 output from h2 is missing: only 8 bytes of daemon-h2.log arrived: the agent there has no more of it; the rest is lost, since the agent deletes its logs when it ends",
		},
		"it cannot be written": {
			before: map[string]string{"mpirun.log/x": ""}, output: all, want: map[string]string{"daemon-h2.log": "h2 says\n"},
			note: " what Open MPI says is not written any more: \"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hosts := fourHosts()[:2]
				talk := &talkers{output: c.output, asked: map[string]*wire.OutputRequest{}}
				l := New(Options{Dialer: talk, Hosts: hosts, HostTimeout: time.Minute})
				defer func() {
					if err := l.Close(); err != nil {
						t.Error(err)
					}
				}()
				a := attempt(job.MPIOpenMPI)
				a.LogDir = t.TempDir()
				for name, text := range c.before {
					path := filepath.Join(a.LogDir, name)
					if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
						t.Fatal(err)
					}
				}
				var mu sync.Mutex
				var notes []string
				o, err := l.Run(t.Context(), a, func(e job.Event) {
					mu.Lock()
					defer mu.Unlock()
					if e.Kind == job.KindNote {
						notes = append(notes, e.Host+" "+e.Text)
					}
				})
				if err != nil || !o.Good(2) {
					t.Fatalf("%+v, %v", o, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if told := strings.Join(notes, "\n"); len(notes) > 1 || (told == "") != (c.note == "") || !strings.HasPrefix(told, c.note) {
					t.Errorf("told %q, want %q", told, c.note)
				}
				got := map[string]string{}
				for _, name := range []string{"mpirun.log", "daemon-h1.log", "daemon-h2.log"} {
					if data, err := os.ReadFile(filepath.Join(a.LogDir, name)); err == nil {
						got[name] = string(data)
					}
				}
				if !maps.Equal(got, c.want) {
					t.Errorf("the logs are %q, want %q", got, c.want)
				}
				for host, ask := range talk.asked {
					if i := slices.Index(ask.Ranks, -1); i < 0 && name != "it cannot be written" || i >= 0 && ask.Out[i] != c.offsets[host] {
						t.Errorf("%s was asked for %v from %v", host, ask.Ranks, ask.Out)
					}
				}
				if text, err := os.ReadFile(filepath.Join(a.LogDir, job.LogName(1, "out"))); err != nil || string(text) != "hello\n" {
					t.Errorf("rank 1 printed %q, %v", text, err)
				}
			})
		})
	}
}
