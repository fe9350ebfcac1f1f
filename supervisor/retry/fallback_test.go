package retry

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gangrun/gangrun/internal/job"
)

// kept returns a checkpoint of a step as a run leaves it.
func kept(step int64) *job.Checkpoint {
	return &job.Checkpoint{Path: fmt.Sprintf("/ckpt/step-%d", step), Step: step, Time: now.Add(time.Duration(step) * time.Second)}
}

// failedFrom returns an attempt that started from a checkpoint and failed before any progress.
func failedFrom(c *job.Checkpoint, what job.Category) Past {
	return Past{Cause: cause(what, string(what), ""), From: kept(40), Saved: kept(40), Resumed: c, Step: -1}
}

func TestAvoided(t *testing.T) {
	// This attempt wrote the checkpoints.
	first := Past{Cause: cause(job.Killed, "killed", ""), Saved: kept(40), Step: 45}
	moving := func(p Past) Past { p.Step = 41; return p }
	zero := func(p Past) Past { p.Step = 0; return p }
	saving := func(p Past) Past { p.Saved = kept(60); return p }
	c40, c20 := kept(40), kept(20)
	again := kept(40)
	again.Time = now.Add(time.Hour)
	for name, test := range map[string]struct {
		past               []Past
		barred, lastResort string
	}{
		"no attempt":                                 {nil, "", ""},
		"none resumed":                               {[]Past{first}, "", ""},
		"killed in loading":                          {[]Past{first, failedFrom(c40, job.Killed)}, "", ""},
		"killed in loading, twice":                   {[]Past{first, failedFrom(c40, job.Killed), failedFrom(c40, job.Killed)}, "/ckpt/step-40", ""},
		"a cause that is not known, twice":           {[]Past{first, failedFrom(c40, ""), failedFrom(c40, "")}, "/ckpt/step-40", ""},
		"the program's own error":                    {[]Past{first, failedFrom(c40, job.SemanticError)}, "", "/ckpt/step-40"},
		"the program's own error, twice":             {[]Past{first, failedFrom(c40, job.SemanticError), failedFrom(c40, job.Traceback)}, "/ckpt/step-40", ""},
		"a damaged checkpoint":                       {[]Past{first, failedFrom(c40, job.CheckpointError)}, "/ckpt/step-40", ""},
		"two damaged checkpoints":                    {[]Past{first, failedFrom(c40, job.CheckpointError), failedFrom(c20, job.CheckpointError)}, "/ckpt/step-40 /ckpt/step-20", ""},
		"a damaged one of a run that resumed":        {[]Past{failedFrom(c40, job.CheckpointError)}, "", "/ckpt/step-40"},
		"a damaged one of a run that resumed, twice": {[]Past{failedFrom(c40, job.CheckpointError), failedFrom(c40, job.CheckpointError)}, "/ckpt/step-40", ""},
		"preempted in loading, often":                {[]Past{first, failedFrom(c40, job.Preempted), failedFrom(c40, job.Preempted), failedFrom(c40, job.HostLost)}, "", ""},
		"killed later":                               {[]Past{first, moving(failedFrom(c40, job.Killed)), moving(failedFrom(c40, job.Killed))}, "", ""},
		"killed in loading, then later":              {[]Past{first, failedFrom(c40, job.Killed), moving(failedFrom(c40, job.Killed)), failedFrom(c40, job.Killed)}, "", ""},
		"its own error, then killed later":           {[]Past{first, failedFrom(c40, job.Traceback), moving(failedFrom(c40, job.Killed))}, "", ""},
		"its own error, then preempted":              {[]Past{first, failedFrom(c40, job.Traceback), failedFrom(c40, job.Preempted)}, "", "/ckpt/step-40"},
		"step 0 is told before loading":              {[]Past{first, zero(failedFrom(c40, job.Traceback))}, "", "/ckpt/step-40"},
		"a newer checkpoint is progress":             {[]Past{first, saving(failedFrom(c40, job.Traceback))}, "", ""},
		"written anew between":                       {[]Past{first, failedFrom(c40, job.Killed), failedFrom(again, job.Killed)}, "", ""},
	} {
		names := func(all []job.Checkpoint) string {
			var words []string
			for _, c := range all {
				words = append(words, c.Path)
			}
			return strings.Join(words, " ")
		}
		barred, lastResort := Avoided(test.past)
		if names(barred) != test.barred || names(lastResort) != test.lastResort {
			t.Errorf("%s: barred %q, last resort %q; want %q, %q", name, names(barred), names(lastResort), test.barred, test.lastResort)
		}
	}
}

// TestDecideFallback checks the verdicts on attempts that failed to load a checkpoint.
func TestDecideFallback(t *testing.T) {
	c40, c20, c10 := kept(40), kept(20), kept(10)
	first := Past{Cause: cause(job.HostLost, "host-lost", ""), Saved: c40, Step: 45}
	then := func(p Past, next *job.Checkpoint) Past { p.Next = next; return p }
	damaged := func(c *job.Checkpoint) Past {
		p := failedFrom(c, job.CheckpointError)
		p.Cause.Artefact = c.Path
		return p
	}
	retry := func(wait int, text string) job.Verdict {
		return job.Verdict{Action: job.Restart, Wait: sec(wait), Reason: text}
	}
	halt := func(text string) job.Verdict { return job.Verdict{Action: job.Stop, Reason: text} }
	none := halt("the job failed to start from every checkpoint that there is")
	three := Policy{Retries: 3, Checkpoints: true}
	never := three
	never.Actions = map[job.Category]job.Action{job.SemanticError: job.RetryNever}
	for name, test := range map[string]struct {
		policy  Policy
		earlier []Past
		last    Past
		want    job.Verdict
	}{
		"damaged": {three, []Past{first}, then(damaged(c40), c20), retry(2, "checkpoint-error may come from step-40: restarting from step-20 (restart 2 of 3)")},
		"the one before is damaged too": {three, []Past{first, damaged(c40)}, then(damaged(c20), c10),
			retry(4, "checkpoint-error may come from step-20: restarting from step-10 (restart 3 of 3)")},
		"too many are damaged": {three, []Past{first, damaged(c40), damaged(c20)}, then(damaged(c10), kept(5)),
			job.Verdict{Action: job.Stop, Reason: "3 restarts without progress are spent", Budget: true}},
		"all are damaged":                    {three, []Past{first}, then(damaged(c40), nil), retry(2, "checkpoint-error may come from step-40: restarting from the beginning (restart 2 of 3)")},
		"the only one of a run that resumed": {three, nil, then(damaged(c40), c40), retry(1, "checkpoint-error may pass: restarting (restart 1 of 3)")},
		"all of a run that resumed":          {three, []Past{damaged(c40)}, then(func() Past { p := damaged(c40); p.Cause.Artefact = ""; return p }(), nil), none},
		"an error that is never cured, after progress": {three, []Past{first}, then(failedFrom(c40, job.SemanticError), c20),
			retry(2, "semantic-error may come from step-40: restarting once from step-20 (restart 2 of 3)")},
		"again from the one before":                      {three, []Past{first, failedFrom(c40, job.SemanticError)}, then(failedFrom(c20, job.SemanticError), c10), halt("a retry cannot fix semantic-error")},
		"another from the one before":                    {three, []Past{first, failedFrom(c40, job.SemanticError)}, then(failedFrom(c20, job.Assertion), c10), halt("a retry cannot fix assertion")},
		"an error that is never cured, no progress ever": {three, nil, then(failedFrom(c40, job.SemanticError), c20), halt("a retry cannot fix semantic-error")},
		"an error that is never cured, no other":         {three, []Past{first}, then(failedFrom(c40, job.SemanticError), c40), halt("a retry cannot fix semantic-error")},
		"an error that is never cured, after a step": {three, []Past{first}, func() Past { p := then(failedFrom(c40, job.SemanticError), c20); p.Step = 41; return p }(),
			halt("a retry cannot fix semantic-error")},
		"an error that the job's policy never retries": {never, []Past{first}, then(failedFrom(c40, job.SemanticError), c20), halt("a retry cannot fix semantic-error")},
		"no retries": {Policy{Checkpoints: true}, []Past{first}, then(failedFrom(c40, job.SemanticError), c20),
			job.Verdict{Action: job.Stop, Reason: "no restarts are allowed (retries is 0)", Budget: true}},
		"a traceback":                {three, []Past{first}, then(failedFrom(c40, job.Traceback), c20), retry(2, "traceback may come from step-40: restarting once from step-20 (restart 2 of 3)")},
		"a traceback again":          {three, []Past{first, failedFrom(c40, job.Traceback)}, then(failedFrom(c20, job.Traceback), c10), halt("the same traceback again without progress: a retry cannot fix it")},
		"a crash":                    {three, []Past{first}, then(failedFrom(c40, job.CoreDump), c40), retry(2, "core-dump may pass: restarting once (restart 2 of 3)")},
		"a crash, twice":             {three, []Past{first, failedFrom(c40, job.CoreDump)}, then(failedFrom(c40, job.CoreDump), c20), retry(4, "core-dump may come from step-40: restarting once from step-20 (restart 3 of 3)")},
		"a crash, no other":          {three, []Past{first, failedFrom(c40, job.CoreDump)}, then(failedFrom(c40, job.CoreDump), nil), none},
		"storage, no other":          {three, []Past{first, failedFrom(c40, job.StorageError)}, then(failedFrom(c40, job.StorageError), nil), none},
		"preempted in loading":       {three, []Past{first, failedFrom(c40, job.Preempted)}, then(failedFrom(c40, job.Preempted), c40), retry(4, "preempted may pass: restarting (not charged to the retries)")},
		"its checkpoint was removed": {three, []Past{first}, then(failedFrom(c40, job.HostLost), nil), retry(2, "host-lost may pass: there is no other host, restarting on the same one (restart 2 of 3)")},
	} {
		if got := test.policy.Decide(test.earlier, test.last, now); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, test.want)
		}
	}
}

// TestFallbackBounded: whatever a job fails of, no attempt without progress starts a third time from a
// checkpoint that may be the cause. Every run ends. A run with --resume never starts from the beginning again.
func TestFallbackBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := Policy{Retries: rapid.IntRange(0, 6).Draw(t, "retries"), Checkpoints: true}
		disk := []*job.Checkpoint{kept(40), kept(30), kept(20)}[:rapid.IntRange(1, 3).Draw(t, "checkpoints")]
		choose := func(past []Past) *job.Checkpoint {
			barred, lastResort := Avoided(past)
			for _, not := range [][]job.Checkpoint{slices.Concat(barred, lastResort), barred} {
				for _, c := range disk {
					if !slices.ContainsFunc(not, func(n job.Checkpoint) bool { return SameCheckpoint(&n, c) }) {
						return c
					}
				}
			}
			return nil
		}
		var past []Past
		var from *job.Checkpoint
		told := rapid.Bool().Draw(t, "told to resume")
		if told {
			from = disk[0]
		} else {
			past = append(past, Past{Cause: cause(job.Killed, "killed", ""), Saved: disk[0], Step: 45})
			from = disk[0]
		}
		suspected := map[string]int{}
		for range 100 {
			what := rapid.SampledFrom(job.Categories()).Filter(job.Category.Charged).Draw(t, "category")
			last := failedFrom(from, what)
			if from == nil && told {
				t.Fatalf("begins anew after %d attempts", len(past))
			}
			if last.Stuck() {
				if suspected[from.Path]++; suspected[from.Path] > maxUses {
					t.Fatalf("%s is started from a third time", from.Path)
				}
			}
			last.From, last.Saved = disk[0], disk[0]
			last.Next = choose(append(slices.Clone(past), last))
			v := policy.Decide(past, last, now)
			past, from = append(past, last), last.Next
			if v.Action != job.Restart {
				return
			}
		}
		t.Fatal("it does not end")
	})
}
