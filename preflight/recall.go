package preflight

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/gangrun/gangrun/preflight/memory"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// key returns the key of the job's trial in the Memory. It returns "" if the trial must not be remembered.
func (t *trial) key(facts []job.Facts) string {
	env := trialEnviron(t.p.Env, t.spec)
	key, ok := memory.Key(t.spec, env, facts)
	if !ok || t.p.Input == UnknownInput {
		return ""
	}
	if t.p.Input != "" {
		sum := sha256.Sum256([]byte(key + t.p.Input))
		key = hex.EncodeToString(sum[:])
	}
	return key
}

// recall reports whether a trial with that key has passed recently. If so, it tells the user, and emits what
// the trial showed about MPI, so that the gang starts as it would after the trial.
func (t *trial) recall(key string) bool {
	passed, ok := t.p.Memory.Recall(key, t.p.now())
	if !ok || t.spec.Ranks < passed.Ranks {
		return false
	}
	t.say("passed %s ago with the same program, arguments and environment; not repeated", text.Span(t.p.now().Sub(passed.Time)))
	if up := passed.Wireup; up != nil {
		t.sayOpenMPI(up)
		t.emit(job.Event{Time: t.p.now(), Kind: job.KindWireup, Wireup: up})
	}
	return true
}

// remember stores that the trial with that key has passed. ranks is the number of its ranks.
func (t *trial) remember(key string, ranks int) {
	if key == "" {
		return
	}
	if err := t.p.Memory.Remember(key, memory.Passed{Time: t.p.now(), Ranks: ranks, Wireup: t.wireup}); err != nil {
		t.say("passed, but cannot be remembered: %v", err)
	}
}

// sayOpenMPI tells the user that the gang is started with Open MPI because the trial showed that it uses Open
// MPI.
func (t *trial) sayOpenMPI(up *job.Wireup) {
	t.say("it uses Open MPI (%s), which the gang is started with, then", up.Library)
}
