package lease

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
)

// Ticket says what a waiting gang wants from one host.
type Ticket struct {
	// Run is the ID of the run. Tickets of the same run, such as those of a gang and its
	// trial, do not wait for each other.
	Run string `json:"run"`
	// Since is when the gang began to wait. It is the same in the tickets of the gang on all of its hosts.
	Since time.Time `json:"since"`
	// Devices are the GPUs of this host that the gang could use, the preferred ones first, and at most
	// MaxDevices. Count is how many of them the gang claims, which is as many as the gang can use on this host.
	// Least is how many of them must be idle before the gang can start. Least is less than Count if the gang
	// could start with fewer GPUs of this host, or could also start on other hosts.
	Devices []string `json:"devices"`
	Count   int      `json:"count"`
	Least   int      `json:"least,omitempty"`
	// Limit is the time limit of the job; zero if it has none.
	Limit time.Duration `json:"limit,omitempty"`
	// NotBefore is the earliest time at which the gang can start on all of its hosts together
	// (see Earliest). It is zero if unknown.
	NotBefore time.Time `json:"not_before,omitzero"`
}

// Limits on the size of a ticket. Every process that takes GPUs reads the tickets of all users,
// so a ticket must not be costly to read.
const (
	// MaxDevices is the maximum number of GPUs in a ticket. A host with 16 GPUs of 7 MIG
	// instances each has 112 devices.
	MaxDevices = 256
	// maxName is the maximum length of the name of a run or a GPU, in bytes.
	maxName = 256
)

// checkName returns an error if the name of a run, a GPU or a host is not valid. Other
// users' terminals show these names.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("a name of %d bytes is too long; at most %d are possible", len(name), maxName)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return fmt.Errorf("the name %q has a character that cannot be printed", name)
		}
	}
	return nil
}

// validate returns an error if a ticket is not valid.
func (t Ticket) validate() error {
	switch {
	case t.Run == "":
		return errors.New("a ticket must name its run")
	case t.Since.IsZero():
		return fmt.Errorf("the ticket of run %q must say since when it waits", t.Run)
	case len(t.Devices) > MaxDevices:
		return fmt.Errorf("a ticket names %d GPUs of one host; at most %d are possible", len(t.Devices), MaxDevices)
	case t.Count < 0 || t.Count > len(t.Devices):
		return fmt.Errorf("run %q asks for %d GPUs out of %d; it could never have them", t.Run, t.Count, len(t.Devices))
	case t.Least < 0 || t.Least > t.Count:
		return fmt.Errorf("run %q needs at least %d GPUs and has a ticket for %d", t.Run, t.Least, t.Count)
	case t.Limit < 0:
		return fmt.Errorf("run %q has the time limit %s; it must not be negative", t.Run, t.Limit)
	}
	if err := checkName(t.Run); err != nil {
		return err
	}
	seen := make(map[string]bool, len(t.Devices))
	for _, d := range t.Devices {
		if d == "" {
			return fmt.Errorf("run %q names a GPU without a UUID", t.Run)
		}
		if err := checkName(d); err != nil {
			return fmt.Errorf("run %q names a GPU: %w", t.Run, err)
		}
		if seen[d] {
			return fmt.Errorf("run %q names GPU %q twice", t.Run, d)
		}
		seen[d] = true
	}
	return nil
}

// before reports whether t is served before u. That is so if t is older, or if it is as old and its run has the
// lesser name.
func (t Ticket) before(u Ticket) bool { return compare(t, u) < 0 }

func compare(t, u Ticket) int {
	return cmp.Or(t.Since.Compare(u.Since), cmp.Compare(t.Run, u.Run))
}

// Request is what a gang wants from one host now. If the request is refused, the gang waits
// with the ticket.
type Request struct {
	Ticket
	// Take has the GPUs to take now: at most Count of the Devices. Try takes either all of them
	// or none. If Take is empty, Try only returns the state of the host.
	Take []string `json:"take,omitempty"`
	// Ranks, User and Command tell other users what the GPUs are used for. User is the user's
	// name; if it is empty, the numeric user ID is shown.
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
