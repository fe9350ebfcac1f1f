// Package report queues the reports of a gang from its agent to its controller.
package report

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// maxReports limits the events that wait for a controller that does not read. If there are more, the Queue drops events
// of progress, but no other events.
const maxReports = 10_000

// Queue collects reports. Reports that arrive while a message is being sent are combined into the next message.
// The zero value is ready to use.
type Queue struct {
	more notify.Broadcast
	Keep bool // keep reports that were sent, for a controller that takes over

	mu   sync.Mutex
	next *wire.GangReply
	kept *wire.GangReply // the reports that were sent, without progress and relays
	turn int             // the number of the call of Send that may send
}

// Event queues an event.
func (r *Queue) Event(e job.Event) {
	data, err := exact.Marshal(e)
	if err != nil {
		panic("encode an event: " + err.Error()) // an event can always be encoded
	}
	r.Add(func(m *wire.GangReply) {
		if e.Kind != job.KindProgress || len(m.Events) < maxReports {
			m.Events = append(m.Events, data)
		}
	})
}

// Lines queues lines of evidence.
func (r *Queue) Lines(lines ...job.Line) {
	for _, line := range lines {
		data, err := exact.Marshal(line)
		if err != nil {
			panic("encode a line: " + err.Error())
		}
		r.Add(func(m *wire.GangReply) { m.Lines = append(m.Lines, data) })
	}
}

// Done queues the last report, which says that all ranks have ended except those in unreaped.
func (r *Queue) Done(unreaped []int32) {
	r.Add(func(m *wire.GangReply) { m.Done = &wire.Done{Unreaped: unreaped} })
}

// Add calls edit, which adds a report to the next message.
func (r *Queue) Add(edit func(*wire.GangReply)) {
	r.mu.Lock()
	if r.next == nil {
		r.next = &wire.GangReply{}
	}
	edit(r.next)
	r.mu.Unlock()
	r.more.Notify()
}

// errTakenOver is the error of Send when another Send has begun.
var errTakenOver = errors.New("another controller has taken over")

// Send sends the reports to stream. It begins with the reports that an earlier controller was sent but may not have
// received (see Keep). It returns when it has sent the report of Done, when sending fails, when ctx ends, or when
// another call of Send begins.
func (r *Queue) Send(ctx context.Context, stream interface{ Send(*wire.GangReply) error }) error {
	r.mu.Lock()
	r.turn++
	turn := r.turn
	if r.kept != nil {
		again := r.kept
		r.kept = nil
		if r.next != nil {
			proto.Merge(again, r.next)
		}
		r.next = again
	}
	r.mu.Unlock()
	r.more.Notify()
	for {
		change := r.more.Changed()
		r.mu.Lock()
		if r.turn != turn {
			r.mu.Unlock()
			return errTakenOver
		}
		message := r.next
		r.next = nil
		if r.Keep && message != nil {
			r.remember(message)
		}
		r.mu.Unlock()
		if message == nil {
			select {
			case <-change:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			continue
		}
		if err := stream.Send(message); err != nil || message.Done != nil {
			return err
		}
	}
}

// remember keeps the part of a message that a later controller needs. r.mu is held.
func (r *Queue) remember(message *wire.GangReply) {
	if r.kept == nil {
		r.kept = &wire.GangReply{}
	}
	lasting := proto.CloneOf(message)
	lasting.Relays, lasting.Pulses, lasting.Stacks = nil, nil, nil
	lasting.Events = slices.DeleteFunc(lasting.Events, func(e []byte) bool { return bytes.Contains(e, []byte(`"kind":"progress"`)) })
	if lasting.Wireup != nil {
		r.kept.Wireup = nil
	}
	proto.Merge(r.kept, lasting)
}

// Pulses queues the pulses of the ranks. They replace earlier pulses in the queue.
func (r *Queue) Pulses(p job.Pulses) {
	data, err := exact.Marshal(p)
	if err != nil {
		panic("encode pulses: " + err.Error())
	}
	r.Add(func(m *wire.GangReply) { m.Pulses = data })
}

// Wireup queues a report of how far the ranks have come. The report replaces an earlier report of Wireup in the
// queue.
func (r *Queue) Wireup(up job.Wireup) {
	data, err := exact.Marshal(up)
	if err != nil {
		panic("encode a wireup: " + err.Error())
	}
	r.Add(func(m *wire.GangReply) {
		var last job.Wireup // the earlier one, if it has not been sent yet
		if m.Wireup != nil && !up.Answer && exact.Unmarshal(m.Wireup, &last) == nil && last.Answer {
			up.Answer = true
			if data, err = exact.Marshal(up); err != nil {
				panic("encode a wireup: " + err.Error())
			}
		}
		m.Wireup = data
	})
}
