package controller

import (
	"context"
	"fmt"
	"io"

	"github.com/gangrun/gangrun/internal/controller/stop"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
)

// Stop says how a run is ended.
type Stop struct {
	Now   bool // end the run without a grace period
	Force bool // the user says that the controller, which this machine cannot see, is gone
	Notes io.Writer
}

// End ends a run and waits for its end. already is true if the run had ended before.
func (o Stop) End(ctx context.Context, run home.Run) (s home.Summary, already bool, err error) {
	return stop.Request{Now: o.Now, Force: o.Force, Notes: o.Notes, Instead: o.instead}.End(ctx, run)
}

// instead ends a run in place of its controller, which is gone. The error is home.ErrControlled if another process has
// become the controller.
func (o Stop) instead(ctx context.Context, run home.Run) (home.Summary, error) {
	defer stop.Ignore()() // ignore further requests to stop the run, because this process is stopping it
	t, err := Take(ctx, run, o.Force)
	if err == nil {
		err = t.end(o.Now)
	}
	if err != nil {
		return home.Summary{}, err
	}
	s, err := run.Summary()
	if err == nil && !s.State.Final() {
		err = &failure.Error{Code: failure.CodeMayPass, Err: fmt.Errorf("run %s was ended, but its journal does not say so: it could not be written", run.ID), Hint: "make room there, and type gangrun stop " + run.ID + " again"}
	}
	return s, err
}
