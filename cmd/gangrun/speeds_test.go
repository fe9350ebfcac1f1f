package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
)

// measure checks a job with measurements on some hosts, whose names are separated by spaces.
func (b hostsBed) measure(checkpoints, hosts string, args ...string) (c checked, shown string) {
	b.t.Helper()
	c, shown = b.preflightOn(strings.Fields(hosts), append(args, "--health", "quick", "--checkpoint-dir", checkpoints, "--", "true")...)
	if *c.ExitCode != 0 {
		b.t.Fatalf("exit code %d, %+v\n%s", *c.ExitCode, c.Preflight, shown)
	}
	return c, shown
}

// namesLink reports whether the network link of a host is the only finding.
func (c checked) namesLink(host string) bool {
	return len(c.Preflight) > 0 && strings.Contains(c.Preflight[0].Text, "the network link of "+host+" is slow") && strings.Contains(c.Preflight[0].Text, "it sends ") &&
		!slices.ContainsFunc(c.Preflight, func(f job.Finding) bool {
			return f.Check != "health" || f.Severity != job.SeverityWarning || f.Host != host ||
				!strings.Contains(f.Text, "the network link of ") && !strings.Contains(f.Text, "round trip over the network of ")
		})
}

// TestHealth measures four hosts. Their lines are so slow that the CPUs of this machine, which all hosts share, do not
// limit them. No host may be named as long as the hosts are equal. If one of four lines is slower, its host must be
// named with the speed. If one of two lines is slower, no host may be blamed.
func TestHealth(t *testing.T) {
	t.Parallel()
	b := hostsBed{testhosts.Up(t, 4), t}
	shared := filepath.Join(b.Shared(), "checkpoints")
	if err := os.MkdirAll(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	measure := func(hosts string, args ...string) (checked, string) {
		t.Helper()
		return b.measure(shared, hosts, args...)
	}
	of := func(c checked, kind job.SpeedKind) (all []job.Speed) {
		for _, s := range c.Speeds {
			if s.Kind == kind && s.Value > 0 && s.Error == "" {
				all = append(all, s)
			}
		}
		return all
	}

	const usual, slow = "100mbit", "10mbit"
	for i := range 4 {
		if err := b.Host(i + 1).Rate(usual); err != nil {
			t.Fatal(err)
		}
	}
	c, shown := measure("h1 h2 h3 h4", "-v")
	if len(c.Preflight) > 0 {
		t.Errorf("hosts that are equal: %+v\n%s", c.Preflight, shown)
	}
	for kind, least := range map[job.SpeedKind]int{job.SpeedCPU: 4, job.SpeedMemory: 4, job.SpeedCheckpoint: 4, job.SpeedLog: 4, job.SpeedLink: 12, job.SpeedTrips: 6} {
		if all := of(c, kind); len(all) < least || least > 4 && len(all) > least {
			t.Errorf("%d speeds of %s, want %d: %+v", len(all), kind, least, all)
		}
	}
	if !strings.Contains(shown, "round-trips") || !strings.Contains(shown, " out, ") {
		t.Errorf("-v shows\n%s", shown)
	}
	if left, err := os.ReadDir(shared); err != nil || len(left) > 0 {
		t.Errorf("left in the checkpoint directory: %v, %v", left, err)
	}

	if err := b.Host(3).Rate(slow); err != nil {
		t.Fatal(err)
	}
	c, shown = measure("h1 h2 h3 h4")
	if !c.namesLink("h3") {
		t.Errorf("the line of h3 is slow: %+v\n%s", c.Preflight, shown)
	}
	for _, s := range of(c, job.SpeedLink) {
		if of := s.Host == "h3" || s.Of == "h3"; of && s.Value > 2.5e6 { // 20 Mbit/s, twice the rate of the line
			t.Errorf("a line for 10 Mbit/s carries %+v", s)
		}
	}
	// A line between two hosts is slow in one direction. No host may be blamed.
	if err := b.Host(3).Rate(usual); err != nil {
		t.Fatal(err)
	}
	b.on(3, "tc qdisc replace dev eth0 root tbf rate "+slow+" burst 64kb latency 100ms")
	c, shown = measure("h2 h3")
	if len(c.Preflight) == 0 || c.Preflight[0].Host != "" || !strings.Contains(c.Preflight[0].Text, "is not equally fast on h2 and h3") || !strings.Contains(c.Preflight[0].Text, "from h3 to h2") {
		t.Errorf("h3 sends slowly: %+v\n%s", c.Preflight, shown)
	}
}
