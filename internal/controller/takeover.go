package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/controller/detached"
	"github.com/gangrun/gangrun/internal/controller/hosts"
	"github.com/gangrun/gangrun/internal/controller/stop"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/interrupt"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/record"
)

// Taken is a run that another controller began and that this process has taken over.
type Taken struct {
	run     home.Run
	control *home.Control
	journal *journal.Journal
	past    []job.Event
	agents  map[string]job.Agent // the newest agent of each other host
	stdin   *os.File             // /dev/null, for ranks that are started from now on
}

// takeLimit limits the time in which processes must end that end with a controller on this machine.
const takeLimit = 20 * time.Second

// Take makes this process the controller of a run that has none. The error is
// home.ErrControlled if another process has become the controller in the meantime.
func Take(ctx context.Context, run home.Run, force bool) (*Taken, error) {
	control, err := control(ctx, run, force)
	if err != nil {
		return nil, err
	}
	t := &Taken{run: run, control: control, agents: map[string]job.Agent{}}
	skipped := 0
	if t.past, skipped, err = record.Events(run); err == nil && record.Spec(t.past) == nil {
		err = record.NoSpec(run, t.past, skipped)
	}
	for _, e := range t.past {
		if e.Kind == job.KindHost && e.Agent != nil {
			t.agents[e.Host] = *e.Agent
		}
		if e.Kind == job.KindEnded {
			err = home.ErrControlled // the run has ended meanwhile
		}
	}
	if err == nil {
		t.stdin, err = os.Open(os.DevNull)
	}
	if err == nil {
		t.journal, err = journal.Open(run.JournalPath())
	}
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	return t, nil
}

// control waits until all processes that end with the run's last controller have ended. It then makes this process the
// controller.
func control(ctx context.Context, run home.Run, force bool) (*home.Control, error) {
	look := time.NewTicker(takeLimit / 1000)
	defer look.Stop()
	for deadline := time.Now().Add(takeLimit); ; {
		control, err := run.TakeOver(home.Self())
		if err == nil || !errors.Is(err, home.ErrControlled) {
			return control, err
		}
		if s, err := run.Summary(); err != nil || s.State != job.StateLost && !force {
			return nil, errors.Join(err, home.ErrControlled)
		}
		if time.Now().After(deadline) {
			return nil, &failure.Error{Code: failure.CodeMayPass, Err: fmt.Errorf("processes of run %s, or its controller on another host, still hold %q", run.ID, run.Dir), Hint: "gangrun status " + run.ID + " names its hosts: look there for what is left of it"}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// underWay reports whether an attempt has begun but has not ended.
func (t *Taken) underWay() bool {
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

// spec returns the spec of the run. Secrets are not recorded, so spec takes them from this process's environment. If
// ending is true, the run will only be ended, and secrets may be missing.
func (t *Taken) spec(ending bool) (job.Spec, error) {
	spec := *record.Spec(t.past)
	for _, env := range []map[string]string{spec.Env, spec.Trial.Env, spec.RetryOnDiverge.Env} {
		for _, name := range spec.Secret {
			if _, has := env[name]; !has {
				continue
			}
			value, ok := os.LookupEnv(name)
			if !ok && ending {
				continue
			}
			if !ok {
				return spec, failure.Usage("export "+name+", and attach again", "the run was given %s, which is a secret and is written down nowhere", name)
			}
			env[name] = value
		}
	}
	list, err := hostlist.ForJob(spec)
	if err != nil {
		return spec, err
	}
	for host := range t.agents {
		if !slices.ContainsFunc(list.Hosts, func(h job.Host) bool { return h.Name == host }) {
			return spec, failure.Usage("attach where the run was started: inside the same batch allocation, with the same list of hosts", "the run has an agent on %s, which is not among its hosts now", host)
		}
	}
	return spec, nil
}

// giveBack undoes the takeover. After that, the previous controller counts as the run's controller again.
func (t *Taken) giveBack() error { return errors.Join(t.journal.Close(), t.control.Close()) }

// GoOn continues a run whose controller is gone. It returns an error if none of the hosts
// that may have its ranks can be reached.
func (t *Taken) GoOn(asJSON bool, self *detached.Process) error {
	s, err := t.open(Options{JSON: asJSON, Detached: self}, nil)
	if err != nil {
		return err
	}
	err = s.requireHost()
	if err == nil {
		return s.conclude(s.toEnd(s.placer))
	}
	hint, left := failure.Hint(err), interrupt.Signal{}
	if err = s.giveBack(err); errors.As(err, &left) {
		fmt.Fprintf(os.Stderr, "gangrun: note: run %s is left as it was\n", t.run.ID)
		return err
	}
	return &failure.Error{
		Code: failure.CodeMayPass, Err: fmt.Errorf("run %s, whose controller is gone, cannot be gone on with from here: %w", t.run.ID, err),
		Hint: strings.TrimSuffix(fmt.Sprintf("gangrun attach %s goes on with it where its hosts are reached: its ranks there end %s after its controller's last word, and are started again after that; %s", t.run.ID, record.Spec(t.past).OrphanGrace, hint), "; "),
	}
}

// open opens the session of the run. order is a request to end the run, or nil if there is none.
func (t *Taken) open(options Options, order *home.StopRequest) (*session, error) {
	spec, err := t.spec(order != nil)
	if err != nil {
		return nil, errors.Join(err, t.giveBack())
	}
	options.taken = t
	if order != nil {
		options.order = stop.NewOrder(*order)
		if order.Now {
			spec.Grace = 0
		}
	}
	s, err := openSession(spec, options)
	if err != nil {
		return nil, errors.Join(err, t.giveBack())
	}
	for _, e := range t.past {
		s.show.Fold(e)
	}
	return s, nil
}

// end ends the run.
func (t *Taken) end(now bool) error {
	order := home.StopRequest{By: home.Self(), User: stop.UserName(), Now: now}
	s, err := t.open(Options{Aside: true}, &order)
	if err == nil {
		if err = s.requireHost(); err == nil {
			_, err = s.toEnd(s.placer)
		} else {
			err = s.giveBack(err)
		}
	}
	if err != nil {
		grace := time.Duration(record.Spec(t.past).OrphanGrace)
		return &failure.Error{
			Code: failure.CodeMayPass, Err: fmt.Errorf("run %s, whose controller is gone, cannot be ended from here: %w", t.run.ID, err),
			Hint: fmt.Sprintf("type gangrun stop %s where the run was started; what it has on other hosts ends by itself %s after its controller's last word", t.run.ID, grace),
		}
	}
	return nil
}

// requireHost returns an error if the run that is taken over may have ranks on other hosts, but none of these hosts can
// be reached.
func (s *session) requireHost() error {
	if !s.taken.underWay() || len(s.taken.agents) == 0 {
		return nil
	}
	var other []os.Signal
	if s.order != nil {
		other = append(other, syscall.SIGTERM) // a SIGTERM asks for the same as the order
	}
	ctx, stop := interrupt.Context(other...)
	defer stop()
	if err := s.probed.Wait(ctx); err != nil {
		return err
	}
	away := slices.DeleteFunc(slices.Clone(s.probed.Unreached()), func(u agents.Unreached) bool {
		_, has := s.taken.agents[u.Host]
		return !has
	})
	if len(away) < len(s.taken.agents) {
		return nil
	}
	text, _ := hosts.UnreachedText(away)
	_, hint := hosts.UnreachedText(away[:1]) // the hint mostly helps with the other hosts, too
	return &failure.Error{Code: failure.CodeMayPass, Err: fmt.Errorf("none of the hosts that may have ranks of it can be reached: %s", text), Hint: hint}
}

// giveBack closes the session of a run that this process cannot continue. why is the reason. After that, the previous
// controller counts as the run's controller again.
func (s *session) giveBack(why error) error {
	return errors.Join(why, s.close(), s.journal.Close())
}

// NoteLost writes a note about a run whose controller is gone. The note says what happens to the ranks, and what the
// user can do.
func NoteLost(w io.Writer, run home.Run) {
	fmt.Fprintf(w, "gangrun: note: the controller of run %s is gone: ranks on its own machine ended with it", run.ID)
	events, _, err := journal.Replay(run.JournalPath())
	if err != nil || record.Spec(events) == nil { // nobody can continue the run
		fmt.Fprintln(w, ", those on other hosts by themselves")
		return
	}
	fmt.Fprintf(w, ", those on other hosts end %s after its last word\n", record.Spec(events).OrphanGrace)
	fmt.Fprintf(w, "gangrun: hint: gangrun attach %[1]s goes on with it, gangrun stop %[1]s ends it\n", run.ID)
}
