package requeue

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

func TestDecide(t *testing.T) {
	saved, not := Leg{Saved: true}, Leg{}
	for name, c := range map[string]struct {
		earlier []Leg
		last    Leg
		mayHelp bool
		limit   int
		want    string // the result of Why, if the job is not requeued
	}{
		"of no use":                {last: saved, limit: 3, want: "does not help"},
		"first":                    {last: saved, mayHelp: true, limit: 3},
		"lost before it saved":     {last: Leg{Category: job.HostLost}, mayHelp: true, limit: 3},
		"last leg":                 {earlier: []Leg{saved, saved}, last: saved, mayHelp: true, limit: 3, want: "leg 3 of 3"},
		"one leg":                  {last: saved, mayHelp: true, limit: 1, want: "leg 1 of 1"},
		"time limit, nothing":      {last: Leg{Category: job.TimeLimit}, mayHelp: true, limit: 3, want: "no checkpoint within"},
		"time limit, saved":        {last: Leg{Category: job.TimeLimit, Saved: true}, mayHelp: true, limit: 3},
		"no progress twice":        {earlier: []Leg{saved, not}, last: not, mayHelp: true, limit: 9, want: "two legs in a row"},
		"progress before":          {earlier: []Leg{not, saved}, last: not, mayHelp: true, limit: 9},
		"progress after a bad leg": {earlier: []Leg{not}, last: saved, mayHelp: true, limit: 9},
	} {
		d := Decide(c.earlier, c.last, c.mayHelp, c.limit)
		if d.Requeue != (c.want == "") || !strings.Contains(d.Why, c.want) {
			t.Errorf("%s: %+v, want %q", name, d, c.want)
		}
	}
}

// TestEnds checks that a job that always fails is not requeued for ever, whatever the limit is.
func TestEnds(t *testing.T) {
	var legs []Leg
	for {
		last := Leg{Category: job.HostLost}
		if !Decide(legs, last, true, 1000).Requeue {
			break
		}
		legs = append(legs, last)
	}
	if len(legs) != 1 {
		t.Errorf("queued again %d times", len(legs))
	}
}

func TestTicket(t *testing.T) {
	dir := t.TempDir()
	if got, err := Read(dir, "7"); err != nil || len(got.Legs) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	r := runreport.Report{Job: runreport.Job{Run: "r"}, Attempts: []runreport.Attempt{
		{Cause: &job.Cause{Category: job.GPUHardware, Host: "h3"}}, {Cause: &job.Cause{Category: job.GPUHardware, Host: "h3"}, Saved: &job.Checkpoint{Path: "x"}}, {Cause: &job.Cause{Category: job.NetworkError, Host: "h2"}},
	}}
	want := Ticket{Legs: []Leg{{Run: "r", Category: job.NetworkError, Saved: true, Without: []string{"h3"}}}}
	if err := (Ticket{Legs: []Leg{LegOf(r)}}).Write(dir, "7"); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(dir, "7"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.WriteFile(path(dir, "8"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir, "8"); err == nil {
		t.Error("a truncated ticket is read")
	}
	if err := Remove(dir, "7"); err != nil {
		t.Error(err)
	}
	if err := Remove(dir, "7"); err != nil {
		t.Error(err)
	}
}
