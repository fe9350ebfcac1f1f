package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/interrupt"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/presence"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor"
)

// heedEvery is how often a controller looks whether somebody on another host asks it
// to end the run. A network file system tells nobody of a change.
const heedEvery = time.Second

// asked is a signal that somebody on another host would have sent.
type asked struct {
	sig syscall.Signal
	by  string // what was typed, by whom and where
}

func (a asked) String() string { return a.by }
func (a asked) Signal()        { a.sig.Signal() }

// heed takes requests to end the run for the signals of a user who does so, until the
// function is called that it returns.
func (s *session) heed() func() {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		self := home.Self()
		tick := time.NewTicker(heedEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			taken, _ := s.run.TakeStops(self) // what cannot be taken is told to who asks
			for _, q := range taken {
				signals := []syscall.Signal{syscall.SIGTERM}
				if q.Now {
					signals = append(signals, signalNow)
				}
				for _, sig := range signals {
					select {
					case s.signals <- asked{sig, wordsOf(q)}:
					default: // more were asked for than count
					}
				}
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// wordsOf says who asks for what.
func wordsOf(q home.StopRequest) string {
	command := "gangrun stop"
	if q.Now {
		command += " --now"
	}
	return text.Printable(fmt.Sprintf("%s (%s on %s)", command, q.User, q.By.Host))
}

// askLimit is how long a request to end a run waits for its controller.
const askLimit = 10 * time.Second

// interruption is what a signal stands for that asks for an end.
func interruption(sig os.Signal) supervisor.Interrupted {
	a, ok := sig.(asked)
	if !ok {
		a.sig = sig.(syscall.Signal)
	}
	return supervisor.Interrupted{Signal: a.sig, By: a.by}
}

// askController asks a controller on another host to end its run, and waits until it
// has taken that up.
func askController(run home.Run, c job.Controller, now bool) error {
	ctx, stop := interrupt.Context()
	defer stop()
	request, err := run.AskStop(home.StopRequest{To: c, By: home.Self(), User: userName(), Now: now, At: time.Now()})
	if err != nil {
		return &failure.Error{Code: failure.CodeInternal, Err: err, Hint: "type it on " + c.Host + ": gangrun stop " + run.ID}
	}
	limit := time.NewTimer(askLimit)
	defer limit.Stop()
	tick := time.NewTicker(heedEvery / 4)
	defer tick.Stop()
	for why := error(nil); !request.Taken(); {
		select {
		case <-tick.C:
			why = superseded(run, c)
		case <-limit.C:
			why = &failure.Error{
				Code: failure.CodeMayPass, Err: fmt.Errorf("the run's controller, %s, has not taken the request up within %s: the run goes on for all that is known here", presence.Name(c), askLimit),
				Hint: fmt.Sprintf("see on %[2]s whether it lives, and type there: gangrun stop %[1]s; if it is gone, gangrun stop --force %[1]s ends the run from here, and gangrun attach --force %[1]s goes on with it", run.ID, c.Host),
			}
		case <-ctx.Done():
			var left interrupt.Signal
			why = ctx.Err()
			if errors.As(context.Cause(ctx), &left) {
				why = failure.Exit(128 + int(left.Number))
			}
		}
		if why == nil {
			continue
		}
		back, err := request.Withdraw()
		switch {
		case err != nil:
			return errors.Join(why, err)
		case back && errors.Is(why, errEnded):
			return nil
		case back:
			return why
		}
		return nil // it was taken just now
	}
	return nil
}

// errEnded is that a run needs no end any more.
var errEnded = errors.New("the run has ended")

// superseded is why a request to a controller is in vain; nil while it is not.
func superseded(run home.Run, c job.Controller) error {
	s, err := run.Summary()
	switch {
	case err != nil:
		return err
	case s.State.Final():
		return errEnded
	case s.Controller != nil && *s.Controller != c:
		return &failure.Error{Code: failure.CodeMayPass, Err: fmt.Errorf("%s has become the run's controller meanwhile", presence.Name(*s.Controller)), Hint: "gangrun stop " + run.ID + " asks that one"}
	}
	return nil
}

// userName is who has started this process.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "user " + strconv.Itoa(os.Getuid())
}
