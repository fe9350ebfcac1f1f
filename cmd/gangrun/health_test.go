package main_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// TestHealthSigns runs a gang on two hosts whose checkpoint directory is full. The agent of each host must report
// that. gangrun must show each report once, and have it in the report, in the status, and in the evidence of the
// cause.
func TestHealthSigns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const mount = "mkdir home checkpoints && mount -t tmpfs -o size=1m none checkpoints && cat /dev/zero >checkpoints/step_1 2>/dev/null"
	const rank = `until [ $(grep -c '"kind":"health".*"sign":"disk-full"' home/runs/*/journal.jsonl) = 2 ]; do sleep 0.05; done; exit 3`
	code, said := b.ends(b.inShell(mount, "run", "--loopback", "2", "-n", "2", "--preflight", "off", "--retries", "0", "--checkpoint-dir", "checkpoints", "--", "sh", "-c", rank))
	const full = "/checkpoints (the checkpoint directory) is full: 0 B of 1.0 MiB is free"
	if code != 3 || strings.Count(said, full+"\n") != 2 || // once immediately, and once as a note in the summary
		!strings.Contains(said, "gangrun: warning: on ") || !strings.Contains(said, "gangrun: hint: remove old checkpoints") {
		t.Errorf("exit code %d, and gangrun said:\n%s", code, said)
	}
	var report runreport.Report
	decode(t, b.ask("report", "-o", "json"), &report)
	var hosts []string
	for _, s := range report.Last().Signs {
		if s.Health != nil && s.Health.Sign == job.HealthDiskFull && s.Health.Severity == job.SeverityError && strings.HasSuffix(s.Text, full) && s.Hint != "" && !s.Time.IsZero() {
			hosts = append(hosts, s.Host)
		}
	}
	if slices.Sort(hosts); len(hosts) != 2 || hosts[0] == hosts[1] {
		t.Errorf("signs %+v", report.Last().Signs)
	}
	cause := report.Cause()
	of := func(l job.Line) bool {
		return l.Source == job.SourceAgent && l.Host == cause.Host && strings.HasSuffix(l.Text, full)
	}
	if i := slices.IndexFunc(cause.Evidence, of); i < 0 || i == len(cause.Evidence)-1 {
		t.Errorf("evidence of %s on %s: %+v", cause.Category, cause.Host, cause.Evidence)
	}
	if s := b.status(); !slices.ContainsFunc(s.Notes, func(note string) bool { return strings.HasSuffix(note, full) }) || len(s.Last().Signs) < 2 {
		t.Errorf("status %+v", s.Report)
	}
}
