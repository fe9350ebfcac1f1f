package probe

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gangrun/gangrun/topology/nvml"
)

// Remote is a gangrun-nvml that runs on another host.
type Remote struct {
	Stdout io.Reader
	Stderr func() string // the last part of what it has written to standard error
	// Close ends gangrun-nvml. Reads of Stdout then return.
	Close func() error
}

// stderrTime is how long the last lines on standard error of a Remote may take after its standard output has
// ended.
const stderrTime = 200 * time.Millisecond

// remote does for a program on another host what child does on this host.
func (w *watch) remote(ctx context.Context) ending {
	r, err := w.Launch(ctx, append([]string{"events"}, w.GPUs...)...)
	if err != nil {
		return ending{why: fmt.Sprintf("cannot be started there: %v", err)}
	}
	messages, heard := make(chan message), false
	go func() {
		defer close(messages)
		err := readEvents(r.Stdout, func(e nvml.Event) {
			heard = true
			messages <- message{event: e}
		})
		messages <- message{err: err}
	}()
	end := w.listen(ctx, messages)
	if end == (ending{}) && ctx.Err() == nil { // its output has ended, and has shown what was wrong
		timer := time.NewTimer(stderrTime)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	_ = r.Close() // it may have ended already
	for x := range messages {
		if ctx.Err() == nil {
			w.take(x)
		}
	}
	if ctx.Err() != nil {
		return ending{}
	}
	if end.hung && heard { // a driver that hangs would not let the next gangrun-nvml print anything
		end = ending{why: fmt.Sprintf("nothing has come from it for %v: the driver hangs, or the connection", w.Silence)}
	}
	last := readWarnings(strings.NewReader(r.Stderr()), w.warning)
	if end.why == "" {
		end.why = "it has ended"
	}
	if len(last) > 0 {
		end.why += "; it said " + quoted(string(last))
	}
	return end
}
