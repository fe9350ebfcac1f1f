package lease

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Ticket is what a waiting gang asks of one host.
type Ticket struct {
	// Run names the run. What has the same run never waits for one another's
	// tickets: a gang and its trial.
	Run string `json:"run"`
	// Since is when the gang began to wait, the same on all of its hosts.
	Since time.Time `json:"since"`
	// Devices are the GPUs of this host that the gang could use, those that it
	// would rather have first; Count is how many of them it needs here.
	Devices []string `json:"devices"`
	Count   int      `json:"count"`
	// Limit is how long the job runs at the most, zero where it has no limit.
	Limit time.Duration `json:"limit,omitempty"`
	// NotBefore is when the gang can start at the earliest because of its other
	// hosts, zero where nothing is known: see Waiting.Earliest.
	NotBefore time.Time `json:"not_before,omitzero"`
}

// validate says what is wrong with a ticket.
func (t Ticket) validate() error {
	switch {
	case t.Run == "":
		return errors.New("a ticket must name its run")
	case t.Since.IsZero():
		return fmt.Errorf("the ticket of run %q must say since when it waits", t.Run)
	case t.Count < 0 || t.Count > len(t.Devices):
		return fmt.Errorf("run %q asks for %d GPUs out of %d; it could never have them", t.Run, t.Count, len(t.Devices))
	case t.Limit < 0:
		return fmt.Errorf("run %q has the time limit %s; it must not be negative", t.Run, t.Limit)
	}
	for i, d := range t.Devices {
		if d == "" {
			return fmt.Errorf("run %q names a GPU without a UUID", t.Run)
		}
		if slices.Contains(t.Devices[:i], d) {
			return fmt.Errorf("run %q names GPU %q twice", t.Run, d)
		}
	}
	return nil
}

// before orders tickets: the older first, of two of one age the one whose run has
// the lesser name.
func (t Ticket) before(u Ticket) bool { return compare(t, u) < 0 }

func compare(t, u Ticket) int {
	return cmp.Or(t.Since.Compare(u.Since), cmp.Compare(t.Run, u.Run))
}

// Request is what a gang wants to have from one host now, besides the ticket
// that it waits with if it cannot have it.
type Request struct {
	Ticket
	// Take are the GPUs to be taken now, all or none; at most Count of Devices. With
	// none the answer only tells how things stand.
	Take []string `json:"take,omitempty"`
	// Ranks, User and Command tell others what the GPUs are used for. User is the
	// user's name; without it the uid is shown.
	Ranks   []int  `json:"ranks,omitempty"`
	User    string `json:"user,omitempty"`
	Command string `json:"command,omitempty"`
}

func (r Request) validate() error {
	if err := r.Ticket.validate(); err != nil {
		return err
	}
	if len(r.Take) > r.Count {
		return fmt.Errorf("run %q takes %d GPUs and has a ticket for %d", r.Run, len(r.Take), r.Count)
	}
	for i, d := range r.Take {
		if !slices.Contains(r.Devices, d) {
			return fmt.Errorf("run %q takes GPU %q, which its ticket does not name", r.Run, d)
		}
		if slices.Contains(r.Take[:i], d) {
			return fmt.Errorf("run %q takes GPU %q twice", r.Run, d)
		}
	}
	return nil
}
