package agent

import (
	"encoding/json"
	"sync"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// maxReports bounds the events that wait for a controller that does not read;
// progress beyond it is dropped, nothing else is.
const maxReports = 10_000

// reports collects what there is to tell the controller. What comes while a
// message is being sent travels together in the next.
type reports struct {
	bell bell

	mu   sync.Mutex
	next *wire.GangReply
}

func (r *reports) event(e job.Event) {
	data, err := json.Marshal(e)
	if err != nil {
		panic("encode an event: " + err.Error()) // the vocabulary can always be encoded
	}
	r.add(func(m *wire.GangReply) {
		if e.Kind != job.KindProgress || len(m.Events) < maxReports {
			m.Events = append(m.Events, data)
		}
	})
}

func (r *reports) line(lines ...job.Line) {
	for _, line := range lines {
		data, err := json.Marshal(line)
		if err != nil {
			panic("encode a line: " + err.Error())
		}
		r.add(func(m *wire.GangReply) { m.Lines = append(m.Lines, data) })
	}
}

// done is the last report.
func (r *reports) done(unreaped []int32) {
	r.add(func(m *wire.GangReply) { m.Done = &wire.Done{Unreaped: unreaped} })
}

func (r *reports) add(change func(*wire.GangReply)) {
	r.mu.Lock()
	if r.next == nil {
		r.next = &wire.GangReply{}
	}
	change(r.next)
	r.mu.Unlock()
	r.bell.ring()
}

// send sends every report, up to the one with Done, or until sending fails.
func (r *reports) send(to interface{ Send(*wire.GangReply) error }) error {
	for {
		change := r.bell.wait()
		r.mu.Lock()
		message := r.next
		r.next = nil
		r.mu.Unlock()
		if message == nil {
			<-change
			continue
		}
		if err := to.Send(message); err != nil || message.Done != nil {
			return err
		}
	}
}
