package ssh

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/bridge"
	"github.com/gangrun/gangrun/internal/remote/sshtest"
	"github.com/gangrun/gangrun/launcher"
)

// TestOutputOfKilledAgent checks that the output that an agent received before it was killed arrives, although the
// line was cut then. Nothing may stay on the host.
func TestOutputOfKilledAgent(t *testing.T) {
	for name, c := range map[string]struct {
		what  string
		end   syscall.Signal
		whole bool // the agent could read everything that its ranks had left in their pipes
	}{
		"killed":             {"agent", syscall.SIGKILL, false},
		"told to end":        {"agent", syscall.SIGTERM, true},
		"watchdog is killed": {"watchdog", syscall.SIGKILL, true},
	} {
		t.Run(name, func(t *testing.T) { testOutputOfKilledAgent(t, c.what, c.end, c.whole) })
	}
}

func testOutputOfKilledAgent(t *testing.T, what string, end syscall.Signal, whole bool) {
	h := newHosts(t)
	hosts := []job.Host{{Name: "h1", Address: "127.0.0.1"}}
	dialer := h.agents(t, nil)
	dialer.OrphanGrace = 2 * sshtest.Longest
	l := launcher.New(launcher.Options{Dialer: dialer, Hosts: hosts, HostTimeout: sshtest.Longest, OrphanGrace: 2 * sshtest.Longest})
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	// One rank has ended, and the other one has not. Both print a lot.
	const script = `while [ ! -e "$0" ]; do sleep 0.02; done; seq 100000; [ "$RANK" = 0 ] || exec sleep 1000`
	a := job.Attempt{
		Run: "test", Number: 1, Command: []string{"sh", "-c", script, h.Path("go")}, MPI: job.MPINone, LogDir: t.TempDir(), Workdir: h.Dir,
		Placement: job.Placement{Hosts: hosts, Ranks: []job.Rank{{Rank: 0, Host: "h1", LocalSize: 2}, {Rank: 1, Host: "h1", LocalRank: 1, LocalSize: 2}}},
	}
	var want strings.Builder
	for i := range 100_000 {
		fmt.Fprintln(&want, i+1)
	}
	var notes []string
	started := make(chan struct{})
	over := make(chan job.Outcome, 1)
	go func() {
		defer close(over)
		o, err := l.Run(t.Context(), a, func(e job.Event) {
			switch e.Kind {
			case job.KindAllStarted:
				close(started)
			case job.KindNote:
				if strings.Contains(e.Text, " bytes") { // ignores a note that this machine stood still
					notes = append(notes, e.Text)
				}
			}
		})
		if err != nil {
			t.Error(err)
		}
		over <- o
	}()
	select {
	case <-started:
	case <-time.After(sshtest.Longest):
		t.Fatal("the ranks do not start")
	}
	h.proxy.set(true)
	if err := os.WriteFile(h.Path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	some(t, func() (ranks []int) {
		for rank := range 2 {
			text, _ := os.ReadFile(filepath.Join(h.left()[0], "logs/test/1", job.LogName(rank, "out")))
			if string(text) != want.String() {
				return nil
			}
			ranks = append(ranks, rank)
		}
		return ranks
	})
	some(t, func() []int { // the agent has seen the end of the first rank
		info, err := os.Stat(filepath.Join(h.left()[0], "logs/test/1", job.LogName(0, "out")))
		if err != nil || info.Mode().Perm() != bridge.Whole {
			return nil
		}
		return []int{0}
	})
	for _, pid := range some(t, func() []int { return h.processes()[what] }) {
		if err := syscall.Kill(pid, end); err != nil {
			t.Fatal(err)
		}
	}
	// The line works again only when the agent is gone. Otherwise the agent could send the rest itself.
	some(t, func() []int {
		if len(h.processes()["agent"]) > 0 {
			return nil
		}
		return []int{0}
	})
	h.proxy.set(false)
	if o := <-over; o.Good(2) {
		t.Errorf("it has ended well: %+v", o)
	}
	for rank := range 2 {
		if text, err := os.ReadFile(filepath.Join(a.LogDir, job.LogName(rank, "out"))); err != nil || string(text) != want.String() {
			t.Errorf("of rank %d there are %d bytes, %v, want %d", rank, len(text), err, want.Len())
		}
	}
	said := fmt.Sprintf("output from h1 is missing: only %d bytes of rank 1 arrived: %s; h1 has no more of it", want.Len(), agents.ErrGone)
	if whole {
		said = " bytes that its ranks had printed have been fetched from h1, and nothing of it is missing"
	}
	if len(notes) != 1 || !strings.HasSuffix(notes[0], said) {
		t.Errorf("noted %q, want %q", notes, said)
	}
	if left := h.left(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestTakeLeft checks that the files of a bridge's answer are read up to their ends, and nothing more.
func TestTakeLeft(t *testing.T) {
	file := func(name string, mode int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 4, Mode: mode, Format: tar.FormatGNU}
	}
	over := tar.Header{Typeflag: tar.TypeDir, Name: bridge.End}
	large := file("a.out", 0o444)
	large.Format, large.PAXRecords = tar.FormatPAX, map[string]string{"GANGRUN.x": "1"}
	for name, c := range map[string]struct {
		entries []tar.Header
		cut     int  // number of bytes cut off at the end
		other   bool // the host was booted again
		want    string
		err     string
	}{
		"complete":      {entries: []tar.Header{file("a.out", 0o444), file("a.err", 0o600), over}, want: "a.out true, a.err false, "},
		"nothing":       {entries: []tar.Header{over}},
		"started anew":  {entries: []tar.Header{file("a.out", 0o444), over}, other: true, want: "a.out false, "},
		"no end":        {entries: []tar.Header{file("a.out", 0o444)}, want: "a.out true, ", err: "unexpected EOF"},
		"no word":       {entries: []tar.Header{over}, cut: 1536, err: "unexpected EOF"},
		"cut":           {entries: []tar.Header{file("a.out", 0o444), over}, cut: 1536 + 510, want: "a.out true, ", err: "unexpected EOF"},
		"twice":         {entries: []tar.Header{file("a.out", 0o444), file("a.out", 0o444), over}, want: "a.out true, ", err: `"a.out" is not what was asked for`},
		"a directory":   {entries: []tar.Header{{Typeflag: tar.TypeDir, Name: "a.out"}, over}, err: `"a.out" is not what was asked for`},
		"a link":        {entries: []tar.Header{{Typeflag: tar.TypeSymlink, Name: "a.out", Linkname: "/etc/passwd"}, over}, err: `"a.out" is not what was asked for`},
		"other records": {entries: []tar.Header{large, over}, err: `"a.out" is not what was asked for`},
	} {
		var packed bytes.Buffer
		archive := tar.NewWriter(&packed)
		for _, e := range c.entries {
			err := archive.WriteHeader(&e)
			if err == nil && e.Size > 0 {
				_, err = archive.Write([]byte("text"))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		packed.Truncate(packed.Len() - c.cut)
		got := ""
		err := takeLeft(&packed, agents.RestRequest{Take: func(name string, whole bool, rest io.Reader) error {
			got += fmt.Sprintf("%s %t, ", name, whole)
			_, err := io.Copy(io.Discard, rest)
			return err
		}}, !c.other)
		if got != c.want || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: took %q, %v; want %q, %q", name, got, err, c.want, c.err)
		}
	}
}
