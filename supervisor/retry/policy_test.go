package retry

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gangrun/gangrun/internal/job"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func cause(category job.Category, signature, artefact string) job.Cause {
	return job.Cause{Category: category, Signature: signature, Artefact: artefact, Rank: 0, Host: "h1", Retry: category.Action()}
}

func checkpoint(step int64) *job.Checkpoint {
	return &job.Checkpoint{Path: "/c", Step: step, Time: now.Add(time.Duration(step) * time.Second)}
}

func TestDecide(t *testing.T) {
	past := func(c job.Cause, step int64) Past { return Past{Cause: c, Step: step} }
	saved := func(c job.Cause, from, to *job.Checkpoint) Past {
		return Past{Cause: c, From: from, Saved: to, Step: -1}
	}
	killed, network := cause(job.Killed, "killed", ""), cause(job.NetworkError, "connection-reset", "")
	oom := cause(job.Killed, "other-kill", "")
	preempted := cause(job.Preempted, "sigusr1", "")
	stale := cause(job.StorageError, "stale-handle", "/data/a")
	stale2 := cause(job.StorageError, "stale-handle", "/data/b")
	port := cause(job.PortInUse, "port-in-use", "29500")
	lost := cause(job.HostLost, "host-lost", "")
	bad := cause(job.GPUHardware, "xid-79", "GPU-1")
	rankBad := cause(job.CUDAFailure, "launch-failed", "")
	overruled := killed
	overruled.Retry = job.RetryNever
	flat := func(c job.Cause, n int) []Past { return slices.Repeat([]Past{past(c, -1)}, n) }

	tests := []struct {
		name    string
		policy  Policy
		earlier []Past
		last    Past
		want    job.Verdict
	}{
		{"never", Policy{Retries: 3}, nil, past(cause(job.ImportError, "x", ""), 10),
			job.Verdict{Action: job.Stop, Reason: "a retry cannot fix import-error"}},
		{"never by the job's policy", Policy{Retries: 3, Actions: map[job.Category]job.Action{job.Killed: job.RetryNever}}, nil, past(killed, -1),
			job.Verdict{Action: job.Stop, Reason: "the job's policy never retries killed"}},
		{"never by the diagnosis", Policy{Retries: 3}, nil, past(overruled, -1),
			job.Verdict{Action: job.Stop, Reason: "a retry cannot fix killed (killed)"}},
		{"the job's policy goes over the diagnosis", Policy{Retries: 3, Actions: map[job.Category]job.Action{job.Killed: job.RetryAgain}}, nil, past(overruled, -1),
			job.Verdict{Action: job.Restart, Reason: "killed may pass: restarting (restart 1 of 3)", Wait: sec(1)}},
		{"once", Policy{Retries: 3}, nil, past(killed, -1),
			job.Verdict{Action: job.Restart, Reason: "killed may pass: restarting once (restart 1 of 3)", Wait: sec(1)}},
		{"once, the second time", Policy{Retries: 3}, flat(killed, 1), past(killed, -1),
			job.Verdict{Action: job.Stop, Reason: "the same killed again without progress: a retry cannot fix it"}},
		{"once, another signature", Policy{Retries: 3}, flat(killed, 1), past(oom, -1),
			job.Verdict{Action: job.Restart, Reason: "killed may pass: restarting once (restart 2 of 3)", Wait: sec(2)}},
		{"once, after a step of progress", Policy{Retries: 3}, []Past{past(killed, 5)}, past(killed, 6),
			job.Verdict{Action: job.Restart, Reason: "killed may pass: restarting once (restart 1 of 3)", Wait: sec(1)}},
		{"once, the progress lies one attempt back", Policy{Retries: 3}, []Past{past(killed, 5), past(killed, 6)}, past(killed, 4),
			job.Verdict{Action: job.Stop, Reason: "the same killed again without progress: a retry cannot fix it"}},
		{"steps are no progress where checkpoints are", Policy{Retries: 3, Checkpoints: true}, []Past{past(killed, 5)}, past(killed, 600),
			job.Verdict{Action: job.Stop, Reason: "the same killed again without progress: a retry cannot fix it"}},
		{"a newer checkpoint is progress", Policy{Retries: 3, Checkpoints: true}, []Past{saved(killed, nil, checkpoint(5))}, saved(killed, checkpoint(5), checkpoint(6)),
			job.Verdict{Action: job.Restart, Reason: "killed may pass: restarting once (restart 1 of 3)", Wait: sec(1)}},
		{"no cause was found", Policy{Retries: 3}, nil, past(job.Cause{}, -1),
			job.Verdict{Action: job.Restart, Reason: "unknown may pass: restarting once (restart 1 of 3)", Wait: sec(1)}},
		{"no cause was found twice", Policy{Retries: 3}, flat(job.Cause{}, 1), past(job.Cause{}, -1),
			job.Verdict{Action: job.Stop, Reason: "the same unknown again without progress: a retry cannot fix it"}},
		{"again", Policy{Retries: 3}, flat(network, 2), past(network, -1),
			job.Verdict{Action: job.Restart, Reason: "network-error may pass: restarting (restart 3 of 3)", Wait: sec(4)}},
		{"budget", Policy{Retries: 3}, flat(network, 3), past(network, -1),
			job.Verdict{Action: job.Stop, Reason: "3 restarts without progress are spent", Budget: true}},
		{"budget of one", Policy{Retries: 1}, flat(network, 1), past(network, -1),
			job.Verdict{Action: job.Stop, Reason: "1 restart without progress is spent", Budget: true}},
		{"no budget", Policy{}, nil, past(network, -1),
			job.Verdict{Action: job.Stop, Reason: "no restarts are allowed (retries is 0)", Budget: true}},
		{"the restart after the progress counts", Policy{Retries: 2}, []Past{past(network, 5), past(network, 4), past(network, 3)}, past(network, 5),
			job.Verdict{Action: job.Stop, Reason: "2 restarts without progress are spent", Budget: true}},
		{"progress resets the budget", Policy{Retries: 2}, []Past{past(network, 5), past(network, 4), past(network, 9)}, past(network, 8),
			job.Verdict{Action: job.Restart, Reason: "network-error may pass: restarting (restart 2 of 2)", Wait: sec(2)}},
		{"same artefact", Policy{Retries: 3}, []Past{past(stale, -1), past(network, -1)}, past(stale, -1),
			job.Verdict{Action: job.Stop, Reason: "the same stale-handle again without progress: a retry cannot fix it"}},
		{"another artefact", Policy{Retries: 3}, flat(stale, 1), past(stale2, -1),
			job.Verdict{Action: job.Restart, Reason: "storage-error may pass: restarting (restart 2 of 3)", Wait: sec(2)}},
		{"preempted is free", Policy{Retries: 0}, flat(preempted, 99), past(preempted, -1),
			job.Verdict{Action: job.Restart, Reason: "preempted may pass: restarting (not charged to the retries)", Wait: sec(120)}},
		{"preemptions leave the budget alone", Policy{Retries: 1}, flat(preempted, 2), past(network, -1),
			job.Verdict{Action: job.Restart, Reason: "network-error may pass: restarting (restart 1 of 1)", Wait: sec(4)}},
		{"port", Policy{Retries: 3}, flat(network, 2), past(port, -1),
			job.Verdict{Action: job.Restart, Reason: "port-in-use may pass: restarting (restart 3 of 3)", Wait: job.Duration(BackoffPort)}},
		{"host, elsewhere", Policy{Retries: 3, Elsewhere: true}, nil, past(lost, -1),
			job.Verdict{Action: job.Restart, Reason: "host-lost may pass: restarting without h1 (restart 1 of 3)", Wait: sec(1), Exclude: job.Excluded{Hosts: []string{"h1"}}}},
		{"host, nowhere else", Policy{Retries: 3}, nil, past(lost, -1),
			job.Verdict{Action: job.Restart, Reason: "host-lost may pass: there is no other host, restarting on the same one (restart 1 of 3)", Wait: sec(1)}},
		{"no culprit named", Policy{Retries: 3, Elsewhere: true}, nil, past(job.Cause{Category: job.CUDAInit, Rank: -1}, -1),
			job.Verdict{Action: job.Restart, Reason: "cuda-init may pass: restarting (restart 1 of 3)", Wait: sec(1)}},
		{"GPU by its name", Policy{Retries: 3}, nil, past(bad, -1),
			job.Verdict{Action: job.Restart, Reason: "gpu-hardware may pass: restarting without GPU-1 (restart 1 of 3)", Wait: sec(1), Exclude: job.Excluded{Devices: []string{"GPU-1"}}}},
		{"GPUs of the rank", Policy{Retries: 3}, nil, Past{Cause: rankBad, Step: -1, Devices: []string{"GPU-7"}},
			job.Verdict{Action: job.Restart, Reason: "cuda-failure may pass: restarting without GPU-7 (restart 1 of 3)", Wait: sec(1), Exclude: job.Excluded{Devices: []string{"GPU-7"}}}},
		{"GPU without a UUID by its name", Policy{Retries: 3}, nil, Past{Cause: job.Cause{Category: job.GPUHardware, Rank: 3, Artefact: "GPU1"}, Step: -1, Devices: []string{"h2/GPU0", "h2/GPU1"}},
			job.Verdict{Action: job.Restart, Reason: "gpu-hardware may pass: restarting without h2/GPU1 (restart 1 of 3)", Wait: sec(1), Exclude: job.Excluded{Devices: []string{"h2/GPU1"}}}},
		{"a number is no MIG instance", Policy{Retries: 3}, nil, Past{Cause: job.Cause{Category: job.CUDAFailure, Rank: 3, Artefact: "0"}, Step: -1, Devices: []string{"MIG-GPU-1/2/1", "MIG-GPU-1/2/0"}},
			job.Verdict{Action: job.Restart, Reason: "cuda-failure may pass: restarting without MIG-GPU-1/2/1, MIG-GPU-1/2/0 (restart 1 of 3)", Wait: sec(1), Exclude: job.Excluded{Devices: []string{"MIG-GPU-1/2/1", "MIG-GPU-1/2/0"}}}},
		{"no time left", Policy{Retries: 3, Deadline: now.Add(time.Second)}, nil, past(network, -1),
			job.Verdict{Action: job.Stop, Reason: "network-error may pass, but the time limit comes before a restart", Budget: true}},
		{"time left", Policy{Retries: 3, Deadline: now.Add(2 * time.Second)}, nil, past(network, -1),
			job.Verdict{Action: job.Restart, Reason: "network-error may pass: restarting (restart 1 of 3)", Wait: sec(1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.policy.Decide(tt.earlier, tt.last, now); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// TestSameStep decides after attempts that fail with the same signature, or at the same step, or
// both.
func TestSameStep(t *testing.T) {
	past := func(c job.Cause, step int64) Past { return Past{Cause: c, Step: step} }
	network, reset := cause(job.NetworkError, "connection-reset", ""), cause(job.NetworkError, "timed-out", "")
	stale, stale2 := cause(job.StorageError, "stale-handle", "/data/a"), cause(job.StorageError, "stale-handle", "/data/b")
	lost, preempted := cause(job.HostLost, "host-lost", ""), cause(job.Preempted, "sigusr1", "")
	again := func(c job.Category) Policy {
		return Policy{Retries: 3, Actions: map[job.Category]job.Action{c: job.RetryAgain}}
	}
	saved := past(network, 5)
	saved.From, saved.Saved = checkpoint(4), checkpoint(5)
	for _, tt := range []struct {
		name    string
		policy  Policy
		earlier []Past
		last    Past
		reason  string // the reason of a stop; empty for a restart
	}{
		{"again", Policy{Retries: 3}, []Past{past(network, 5)}, past(network, 5), "the same connection-reset again at step 5: a retry cannot fix it"},
		{"at step 0", Policy{Retries: 3}, []Past{past(network, 0)}, past(network, 0), "the same connection-reset again at step 0: a retry cannot fix it"},
		{"elsewhere", Policy{Retries: 3, Elsewhere: true}, []Past{past(lost, 5)}, past(lost, 5), "the same host-lost again at step 5: a retry cannot fix it"},
		{"with another artefact", Policy{Retries: 3}, []Past{past(stale, 5)}, past(stale2, 5), "the same stale-handle again at step 5: a retry cannot fix it"},
		{"whatever the job's policy", again(job.NetworkError), []Past{past(network, 5)}, past(network, 5), "the same connection-reset again at step 5: a retry cannot fix it"},
		{"with checkpoints, from the same one", Policy{Retries: 3, Checkpoints: true}, []Past{past(network, 5)}, past(network, 5), "the same connection-reset again at step 5: a retry cannot fix it"},
		{"though retries are left over from progress", Policy{Retries: 3}, []Past{past(network, 3), past(network, 5)}, past(network, 5), "the same connection-reset again at step 5: a retry cannot fix it"},
		{"after a newer checkpoint", Policy{Retries: 3, Checkpoints: true}, []Past{past(network, 5)}, saved, ""},
		{"another signature", Policy{Retries: 3}, []Past{past(network, 5)}, past(reset, 5), ""},
		{"a later step", Policy{Retries: 3}, []Past{past(network, 5)}, past(network, 6), ""},
		{"an earlier step", Policy{Retries: 3}, []Past{past(network, 5)}, past(network, 4), ""},
		{"not in a row", Policy{Retries: 3}, []Past{past(network, 5), past(reset, 3)}, past(network, 5), ""},
		{"no step is known", Policy{Retries: 3}, []Past{past(network, -1)}, past(network, -1), ""},
		{"the batch system's doing", Policy{Retries: 3}, []Past{past(preempted, 5)}, past(preempted, 5), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := tt.policy.Decide(tt.earlier, tt.last, now)
			want := job.Stop
			if tt.reason == "" {
				want = job.Restart
			}
			if v.Action != want || v.Deterministic != (want == job.Stop) || v.Budget || tt.reason != "" && v.Reason != tt.reason {
				t.Errorf("%+v", v)
			}
		})
	}
}

func sec(n int) job.Duration { return job.Duration(time.Duration(n) * time.Second) }

func TestNewer(t *testing.T) {
	nameless := func(d time.Duration) *job.Checkpoint { return &job.Checkpoint{Step: -1, Time: now.Add(d)} }
	tests := []struct {
		name string
		a, b *job.Checkpoint
		want bool
	}{
		{"none", nil, nil, false},
		{"lost", checkpoint(1), nil, false},
		{"first", nil, checkpoint(1), true},
		{"later step", checkpoint(1), checkpoint(2), true},
		{"earlier step written later", checkpoint(5), &job.Checkpoint{Step: 2, Time: now.Add(time.Hour)}, false},
		{"same step written again", checkpoint(5), &job.Checkpoint{Step: 5, Time: now.Add(time.Hour)}, false},
		{"no step, later", nameless(0), nameless(1), true},
		{"no step, same", nameless(0), nameless(0), false},
		{"one step only, later", nameless(0), checkpoint(3), true},
	}
	for _, tt := range tests {
		if got := Newer(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: newer = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func drawPast(t *rapid.T) Past {
	c := job.Cause{
		Category:  rapid.SampledFrom(append(job.Categories(), "")).Draw(t, "category"),
		Signature: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "signature"),
		Artefact:  rapid.SampledFrom([]string{"", "/x", "GPU-1"}).Draw(t, "artefact"),
		Host:      rapid.SampledFrom([]string{"", "h1"}).Draw(t, "host"),
	}
	p := Past{Cause: c, Step: rapid.Int64Range(-1, 4).Draw(t, "step")}
	if s := rapid.Int64Range(-1, 4).Draw(t, "from"); s >= 0 {
		p.From = checkpoint(s)
	}
	if s := rapid.Int64Range(-1, 4).Draw(t, "saved"); s >= 0 {
		p.Saved = checkpoint(s)
	}
	return p
}

func drawPolicy(t *rapid.T) Policy {
	return Policy{
		Retries:     rapid.IntRange(0, 5).Draw(t, "retries"),
		Checkpoints: rapid.Bool().Draw(t, "checkpoints"),
		Elsewhere:   rapid.Bool().Draw(t, "elsewhere"),
		Actions: rapid.MapOfN(rapid.SampledFrom(job.Categories()), rapid.SampledFrom(job.Actions()), 0, 4).
			Draw(t, "actions"),
	}
}

// TestPolicyProperties: the policy keeps its promises along the whole life of a job, whatever happens.
func TestPolicyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := drawPolicy(t)
		var earlier []Past
		charged := 0 // restarts in a row without progress, counted in another way
		for range rapid.IntRange(1, 14).Draw(t, "attempts") {
			last := drawPast(t)
			best := int64(-1)
			for _, p := range earlier {
				best = max(best, p.Step)
			}
			if policy.Checkpoints && Newer(last.From, last.Saved) || !policy.Checkpoints && last.Step > best {
				charged = 0
			}
			v := policy.Decide(earlier, last, now)
			if again := policy.Decide(slices.Clone(earlier), last, now.Add(time.Hour)); !reflect.DeepEqual(v, again) {
				t.Fatalf("not deterministic: %+v, then %+v", v, again)
			}
			if v.Reason == "" || v.Wait < 0 || time.Duration(v.Wait) > BackoffCap {
				t.Fatalf("verdict %+v", v)
			}
			action := policy.Action(last.Cause)
			free := last.Cause.Category == job.Preempted
			switch {
			case v.Action == job.Restart:
				if action == job.RetryNever {
					t.Fatalf("restarted %+v", last.Cause)
				}
				if !free {
					charged++
				}
				if charged > policy.Retries {
					t.Fatalf("%d restarts in a row, but retries is %d", charged, policy.Retries)
				}
				if !v.Exclude.Empty() && action != job.RetryElsewhere {
					t.Fatalf("%s excluded %+v", action, v.Exclude)
				}
				if v.Wait == 0 {
					t.Fatal("restart without a wait")
				}
			case v.Budget && free:
				t.Fatal("a preemption was charged")
			case v.Budget && charged < policy.Retries:
				t.Fatalf("budget spent after %d of %d", charged, policy.Retries)
			case v.Action != job.Stop:
				t.Fatalf("verdict %+v", v)
			}
			earlier = append(earlier, last)
			if v.Action != job.Restart {
				return
			}
		}
	})
}

// TestPreemptionsAreFree: a job that is only ever preempted is restarted again and again, whatever its Retries.
func TestPreemptionsAreFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := Policy{Retries: rapid.IntRange(0, 3).Draw(t, "retries"), Checkpoints: rapid.Bool().Draw(t, "checkpoints")}
		var earlier []Past
		for range rapid.IntRange(1, 40).Draw(t, "preemptions") {
			last := drawPast(t)
			last.Cause.Category = job.Preempted
			if v := policy.Decide(earlier, last, now); v.Action != job.Restart {
				t.Fatalf("verdict %+v", v)
			}
			earlier = append(earlier, last)
		}
	})
}
