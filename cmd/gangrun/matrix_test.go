package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/preflight"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// checked is what gangrun preflight -o json prints.
type checked struct {
	runreport.Report
	Matrix *preflight.Matrix
	Speeds []job.Speed
}

// hostsBed is a bed of four hosts on which tests run the preflight.
type hostsBed struct {
	*testhosts.Bed
	t *testing.T
}

// preflight checks a job on all hosts. It returns the report, and the output for users.
func (b hostsBed) preflight(args ...string) (c checked, shown string) {
	b.t.Helper()
	return b.preflightOn([]string{"h1", "h2", "h3", "h4"}, args...)
}

// preflightOn checks a job on some of the hosts, with one rank on each. It returns the same as preflight.
func (b hostsBed) preflightOn(hosts []string, args ...string) (c checked, shown string) {
	b.t.Helper()
	gangrun, err := binary()
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	cmd := b.Controller().Command(ctx, append([]string{gangrun, "preflight", "-o", "json", "--hosts", strings.Join(hosts, ","), "-n", strconv.Itoa(len(hosts)), "--preflight", "static"}, args...)...)
	cmd.Dir = b.Shared()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &c); err != nil || c.ExitCode == nil || c.Matrix == nil {
		b.t.Fatalf("%v in:\n%s\n%s", err, out.Bytes(), errs.Bytes())
	}
	return c, errs.String()
}

// on runs a command on a host.
func (b hostsBed) on(host int, script string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	if _, err := b.Host(host).Exec(ctx, "sh", "-c", script); err != nil {
		b.t.Fatal(err)
	}
}

// odd returns the hosts that differ from the others in a column of the report.
func (c checked) odd(column string) (hosts []string) {
	at := slices.Index(c.Matrix.Columns, column)
	for _, r := range c.Matrix.Rows {
		if at >= 0 && r.Cells[at].Odd {
			hosts = append(hosts, r.Host)
		}
	}
	return hosts
}

// TestMatrix makes one of four hosts differ from the others, in several ways. The preflight must name this host.
func TestMatrix(t *testing.T) {
	t.Parallel()
	b := hostsBed{testhosts.Up(t, 4), t}
	shared := filepath.Join(b.Shared(), "checkpoints")
	if err := os.MkdirAll(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	for host := 1; host <= 4; host++ {
		b.on(host, `echo '#!/bin/sh' >/root/same; echo 'exit 0' >>/root/same; chmod +x /root/same; cp /root/same /root/differs; cp /root/same /root/input`)
	}
	b.on(3, `echo '# of h3' >>/root/differs; rm /root/input`)

	c, shown := b.preflight("-v", "--checkpoint-dir", shared, "--", "/root/same")
	if *c.ExitCode != 0 || c.Matrix.Odd() || len(c.Preflight) > 0 {
		t.Fatalf("hosts that are equal: exit code %d, %+v\n%s", *c.ExitCode, c.Preflight, shown)
	}
	for _, r := range c.Matrix.Rows {
		if len(r.Reach) != 3 || slices.ContainsFunc(r.Reach, func(f job.ReachFact) bool {
			return f.Error != "" || f.Time <= 0 || !strings.HasPrefix(f.Address, "10.77.0.")
		}) {
			t.Errorf("%s reaches %+v", r.Host, r.Reach)
		}
	}
	if !strings.Contains(shown, "from, to") || !strings.Contains(shown, "shared") {
		t.Errorf("-v shows\n%s", shown)
	}
	if left, err := os.ReadDir(shared); err != nil || len(left) > 0 {
		t.Errorf("left in the checkpoint directory: %v, %v", left, err)
	}

	for _, test := range []struct {
		name         string
		breaks, undo func() error
		args         []string
		code         int
		check        string
		host         string // the host that the finding names
		says         []string
		column       string
		odd          []string
	}{
		{"a pair that is blocked", func() error { return b.Host(2).Block(b.Host(3)) }, func() error { return b.Host(2).Block() }, []string{"--", "/root/same"},
			78, "reach", "", []string{"h2 and h3 cannot connect to each other at 10.77.0.2 and 10.77.0.3: no answer within 5s"}, "connections", []string{"h2", "h3"}},
		{"one way that is blocked", func() error {
			b.on(2, `nft -f - <<'END'
table inet oneway {
	chain input { type filter hook input priority 0; ip saddr 10.77.0.4 tcp flags & (syn | ack) == syn reject with tcp reset; }
}
END`)
			return nil
		}, func() error { b.on(2, "nft delete table inet oneway"); return nil }, []string{"--", "/root/same"},
			78, "reach", "h4", []string{"h4 cannot connect to h2 at 10.77.0.2: connection refused; h2 can connect to h4"}, "connections", []string{"h2", "h4"}},
		{"another program", nil, nil, []string{"--", "/root/differs"},
			78, "program-same", "h3", []string{`"/root/differs" is not the same file on h3 as on the other 3 hosts`}, "program", []string{"h3"}},
		{"a missing input", nil, nil, []string{"input.yaml"},
			65, "inputs", "h3", []string{`input "/root/input" does not exist`}, "inputs", []string{"h3"}},
		{"a checkpoint directory of its own", func() error { b.on(3, "mount -t tmpfs tmpfs "+shared); return nil }, func() error { b.on(3, "umount "+shared); return nil },
			[]string{"--checkpoint-dir", shared, "--", "/root/same"},
			65, "checkpoint-shared", "h3", []string{"h1, h2 and h4 share one; h3 has its own"}, "checkpoints", []string{"h3"}},
		{"a clock that is two minutes ahead", func() error { b.on(3, "echo export GANGRUN_TEST_CLOCK=2m >/root/.bashrc"); return nil }, func() error { b.on(3, "rm /root/.bashrc"); return nil },
			[]string{"--", "/root/same"},
			0, "clock", "h3", []string{"the clock of h3 is 1", " s ahead of those of the other hosts"}, "clock", []string{"h3"}},
		{"no shared checkpoint directory at all", nil, nil, []string{"--checkpoint-dir", "/root/checkpoints", "--", "/root/same"},
			65, "checkpoint-shared", "", []string{"h1, h2, h3 and h4 have one each"}, "checkpoints", []string{"h1", "h2", "h3", "h4"}},
	} {
		if err := os.WriteFile(filepath.Join(b.Shared(), "input.yaml"), []byte("command: /root/same\ninputs: [/root/input]\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if test.breaks != nil {
			if err := test.breaks(); err != nil {
				t.Fatal(err)
			}
		}
		c, shown := b.preflight(test.args...)
		if test.undo != nil {
			if err := test.undo(); err != nil {
				t.Fatal(err)
			}
		}
		if *c.ExitCode != test.code || len(c.Preflight) != 1 || c.Preflight[0].Check != test.check || c.Preflight[0].Host != test.host {
			t.Errorf("%s: exit code %d, %+v\n%s", test.name, *c.ExitCode, c.Preflight, shown)
			continue
		}
		for _, text := range test.says {
			if !strings.Contains(c.Preflight[0].Text, text) {
				t.Errorf("%s: it says %q, want %q", test.name, c.Preflight[0].Text, text)
			}
		}
		if odd := c.odd(test.column); !slices.Equal(odd, test.odd) {
			t.Errorf("%s: odd are %q, want %q", test.name, odd, test.odd)
		}
		if !strings.Contains(shown, "gangrun: host") || !strings.Contains(shown, test.column) || !strings.Contains(shown, "!") {
			t.Errorf("%s: the matrix is not shown:\n%s", test.name, shown)
		}
	}
}
