package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
)

// taken is a run that another controller has begun, and this process goes on with.
type taken struct {
	run     home.Run
	lock    *os.File
	journal *journal.Journal
	past    []job.Event
	agents  map[string]job.Agent // on other hosts, the newest of each
	stdin   *os.File             // of ranks that are started from now on: nothing
}

// takeLimit is how long what ended with a controller on this machine may take to be
// gone.
const takeLimit = 20 * time.Second

// take makes this process the controller of a run that has none. The error is
// home.ErrControlled where another has become that meanwhile.
func take(run home.Run, force bool) (*taken, error) {
	lock, err := control(run, force)
	if err != nil {
		return nil, err
	}
	t := &taken{run: run, lock: lock, agents: map[string]job.Agent{}}
	skipped := 0
	if t.past, skipped, err = replay(run); err == nil && specOf(t.past) == nil {
		err = untold(run, t.past, skipped)
	}
	for _, e := range t.past {
		if e.Kind == job.KindHost && e.Agent != nil {
			t.agents[e.Host] = *e.Agent
		}
		if e.Kind == job.KindEnded {
			err = home.ErrControlled // it has ended meanwhile
		}
	}
	if err == nil {
		t.stdin, err = os.Open(os.DevNull)
	}
	if err == nil {
		t.journal, err = journal.Open(run.JournalPath())
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return t, nil
}

// control waits until all is gone that ended with the run's last controller.
func control(run home.Run, force bool) (*os.File, error) {
	for deadline := time.Now().Add(takeLimit); ; time.Sleep(20 * time.Millisecond) {
		lock, err := run.Control(home.Self())
		if err == nil || !errors.Is(err, home.ErrControlled) {
			return lock, err
		}
		if s, err := run.Summary(); err != nil || s.State != job.StateLost && !force {
			return nil, errors.Join(err, home.ErrControlled)
		}
		if time.Now().After(deadline) {
			return nil, &failure{code: exitMayPass, err: fmt.Errorf("processes of run %s, or its controller on another host, still hold %q", run.ID, run.Dir), hint: "gangrun status " + run.ID + " tells its hosts; see there what is left of it"}
		}
	}
}

// specOf returns what a journal says that the run is; nil where it does not.
func specOf(events []job.Event) *job.Spec {
	for _, e := range events {
		if e.Spec != nil {
			return e.Spec
		}
	}
	return nil
}

// underWay reports whether an attempt has begun and has not ended.
func (t *taken) underWay() bool {
	way := false
	for _, e := range t.past {
		switch e.Kind {
		case job.KindAttempt:
			way = true
		case job.KindOutcome:
			way = false
		}
	}
	return way
}

// spec returns what the run is, with its secrets, which are written down nowhere: they
// are taken from this process's environment.
func (t *taken) spec() (job.Spec, error) {
	spec := *specOf(t.past)
	for _, env := range []map[string]string{spec.Env, spec.Trial.Env} {
		for _, name := range spec.Secret {
			if _, has := env[name]; !has {
				continue
			}
			value, ok := os.LookupEnv(name)
			if !ok {
				return spec, usage("export "+name+", and attach again", "the run was given %s, which is a secret and is written down nowhere", name)
			}
			env[name] = value
		}
	}
	list, err := jobHosts(spec)
	if err != nil {
		return spec, err
	}
	for host := range t.agents {
		if !slices.ContainsFunc(list.Hosts, func(h job.Host) bool { return h.Name == host }) {
			return spec, usage("attach where the run was started: inside the same batch allocation, with the same list of hosts", "the run has an agent on %s, which is not among its hosts now", host)
		}
	}
	return spec, nil
}

// takeOver goes on with a run whose controller is gone.
func takeOver(t *taken, asJSON bool, self *detached) error {
	spec, err := t.spec()
	if err != nil {
		return errors.Join(err, t.journal.Close(), t.lock.Close())
	}
	s, err := openSession(spec, terms{asJSON: asJSON, taken: t, detached: self})
	if err != nil {
		return err
	}
	for _, e := range t.past {
		s.show.event(e, func(string) {})
	}
	return s.conclude(s.toEnd(s))
}

// tellLost says what becomes of a run that has no controller.
func tellLost(w io.Writer, run home.Run) {
	fmt.Fprintf(w, "gangrun: note: the controller of run %s is gone: ranks on its own machine ended with it", run.ID)
	events, _, err := journal.Replay(run.JournalPath())
	if err != nil || specOf(events) == nil { // nobody can go on with it
		fmt.Fprintln(w, ", those on other hosts by themselves")
		return
	}
	fmt.Fprintf(w, ", those on other hosts end %s after its last word\n", specOf(events).OrphanGrace)
	fmt.Fprintf(w, "gangrun: hint: gangrun attach %s goes on with it; once it does, gangrun stop ends it\n", run.ID)
}
