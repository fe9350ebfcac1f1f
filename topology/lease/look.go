package lease

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// State is the state of a GPU's file.
type State string

// The states of a GPU's file.
const (
	StateFree State = "free" // nobody holds the GPU
	StateHeld State = "held"
	// StateDead means that the holder ended without releasing the GPU. Nobody holds it now.
	StateDead State = "dead"
	// StateBarred means that the file cannot be used; Lease.Warning says why. The GPU counts as
	// held.
	StateBarred State = "barred"
)

// Lease describes one GPU of a host, and who holds it.
type Lease struct {
	Device string `json:"device"`
	State  State  `json:"state"`
	// Owner is the holder, or the last holder if the GPU is free. It is nil if unknown.
	Owner *Owner `json:"owner,omitempty"`
	// Warning says what is wrong with the GPU's file, for example that the record is truncated.
	Warning string `json:"warning,omitempty"`

	file string // name of the GPU's file; "" if there is none
}

// Idle reports whether nobody holds the GPU, according to its file.
func (l Lease) Idle() bool { return l.State == StateFree || l.State == StateDead }

// Waiter is a gang that waits for GPUs of a host.
type Waiter struct {
	Owner  Owner  `json:"owner"`
	Ticket Ticket `json:"ticket"`
}

// leaseRecord is the record in the file of a GPU.
type leaseRecord struct {
	Device string `json:"device"`
	Owner  Owner  `json:"owner"`
}

// scene is what look has found in the directory for one host.
type scene struct {
	leases   []Lease  // by device
	waiters  []Waiter // the oldest first
	warnings []string
}

// look reads the directory. It tests whether a file is locked by locking it for a moment,
// so the result is reliable only within ordered.
func (s *Space) look(ctx context.Context) (scene, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return scene{}, err
	}
	var sc scene
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		host, kind, name, ok := split(e.Name())
		if !ok || host != s.part {
			continue
		}
		if ctx.Err() != nil {
			return scene{}, context.Cause(ctx)
		}
		path := filepath.Join(s.dir, e.Name())
		switch kind {
		case kindGPU:
			device := unescape(name)
			if err := checkName(device); err != nil {
				sc.warnings = append(sc.warnings, fmt.Sprintf("%q is passed over: %v", path, err))
				continue
			}
			sc.leases = append(sc.leases, lookLease(path, device))
		case kindTicket:
			if n, err := strconv.Atoi(name); err != nil || n < 0 || n >= maxTickets || strconv.Itoa(n) != name {
				continue // not a file of gangrun
			}
			w, warning := lookTicket(path)
			if warning != "" {
				sc.warnings = append(sc.warnings, warning)
			}
			if w != nil {
				sc.waiters = append(sc.waiters, *w)
			}
		}
	}
	slices.SortStableFunc(sc.waiters, func(a, b Waiter) int { return compare(a.Ticket, b.Ticket) })
	return sc, nil
}

// lookLease reads the file at path, which belongs to the GPU device.
func lookLease(path, device string) Lease {
	l := Lease{Device: device, State: StateBarred, file: filepath.Base(path)}
	var record leaseRecord
	held, whole, _, err := inspect(path, &record)
	for again := 0; held && !whole && (err == nil || errors.Is(err, errTruncated)) && again < 3; again++ {
		held, whole, _, err = inspect(path, &record) // the lease is being released
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Lease{Device: device, State: StateFree}
	}
	if err != nil && !errors.Is(err, errTruncated) {
		l.Warning = barred(path, err)
		return l
	}
	switch {
	case whole:
		l.Owner = &record.Owner
		if strings.Contains(device, "~") && checkName(record.Device) == nil {
			l.Device = record.Device
		}
	case err != nil:
		l.Warning = fmt.Sprintf("%q holds a %v", path, err)
	}
	switch {
	case held:
		l.State = StateHeld
		if !whole && l.Warning == "" {
			l.Warning = fmt.Sprintf("%q is locked and has no record of its holder; lslocks or fuser may name it", path)
		}
	case whole || err != nil:
		l.State = StateDead
	default:
		l.State = StateFree
	}
	return l
}

// lookTicket reads a ticket's file. It returns nil if the ticket is void.
func lookTicket(path string) (*Waiter, string) {
	var w Waiter
	held, whole, uid, err := inspect(path, &w)
	for again := 0; held && errors.Is(err, errTruncated) && again < 3; again++ {
		held, whole, uid, err = inspect(path, &w) // the ticket is being withdrawn
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ""
	case err != nil && !errors.Is(err, errTruncated):
		return nil, barred(path, err)
	case !held, !whole && err == nil: // or it is being withdrawn
		return nil, ""
	case !whole:
		return nil, fmt.Sprintf("%q is locked and holds no ticket; it is passed over", path)
	}
	if err := w.Ticket.validate(); err != nil {
		return nil, fmt.Sprintf("%q: %v; it is passed over", path, err)
	}
	if w.Owner.UID != uid {
		return nil, fmt.Sprintf("%q belongs to uid %d and holds a ticket of uid %d; it is passed over", path, uid, w.Owner.UID)
	}
	return &w, ""
}

func barred(path string, err error) string {
	if info, statErr := os.Lstat(path); statErr == nil && errors.Is(err, fs.ErrPermission) {
		return fmt.Sprintf("%v: mode %#o of uid %d, which gangrun does not make; have that user or root remove it", err, info.Mode().Perm(), owner(info))
	}
	return err.Error()
}

// inspect reports whether the file at path is locked, and who owns it. It reads the file's record into v. whole
// is true if the record is complete. The error is errTruncated if the record is truncated. If the file is
// empty, whole is false and the error is nil.
func inspect(path string, v any) (held, whole bool, uid int, err error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return false, false, -1, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return false, false, -1, err
	}
	uid = owner(info)
	switch err := f.flock(unix.LOCK_SH); {
	case err == nil:
		defer f.drop()
	case errors.Is(err, errHeld):
		held = true
		defer f.Close()
	default:
		f.Close()
		return false, false, uid, err
	}
	data, err := f.read()
	if err != nil || len(data) == 0 {
		return held, false, uid, err
	}
	if err := decode(data, v); err != nil {
		return held, false, uid, err
	}
	return held, true, uid, nil
}

// view returns the scene as a view, to which the ticket rule is applied.
func (sc scene) view(s *Space) view {
	v := view{now: s.clock(), held: make(map[string]holding), key: func(device string) string {
		return filepath.Base(s.path(kindGPU, device))
	}}
	for _, l := range sc.leases {
		switch {
		case l.Idle():
		case l.Owner != nil && l.State == StateHeld:
			v.held[l.file] = holding{run: l.Owner.Run, until: l.Owner.Until}
		default:
			v.held[l.file] = holding{}
		}
	}
	for _, w := range sc.waiters {
		v.tickets = append(v.tickets, w.Ticket)
	}
	return v
}
