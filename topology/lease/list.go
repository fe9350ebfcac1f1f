package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Listing has the leases and the waiting gangs of one host.
type Listing struct {
	// Host is empty for this machine, or the name of a simulated host.
	Host   string  `json:"host"`
	Leases []Lease `json:"leases"`
	// Waiting has the waiting gangs, the one with the oldest ticket first.
	Waiting  []Waiter `json:"waiting"`
	Warnings []string `json:"warnings,omitempty"`
}

// List returns the Listing of every host in the directory dir. The Listing of this machine comes first. If dir
// is empty, it chooses a directory as Open does. If a host cannot be listed, the Warnings of its Listing say
// why.
func List(ctx context.Context, dir string) ([]Listing, error) {
	spaces, warnings, err := spaces(dir)
	if err != nil {
		return nil, err
	}
	var all []Listing
	for _, s := range spaces {
		l, err := s.List(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			l.Warnings = append(l.Warnings, err.Error())
		}
		all = append(all, l)
	}
	if len(warnings) > 0 {
		if len(all) == 0 || all[0].Host != "" {
			all = slices.Insert(all, 0, Listing{})
		}
		all[0].Warnings = append(all[0].Warnings, warnings...)
	}
	return all, nil
}

// List returns the leases and the waiting gangs of this host.
func (s *Space) List(ctx context.Context) (Listing, error) {
	l := Listing{Host: s.host}
	err := s.ordered(ctx, func(ctx context.Context) error {
		sc, err := s.look(ctx)
		l.Leases, l.Waiting, l.Warnings = sc.leases, sc.waiters, sc.warnings
		return err
	})
	if err != nil {
		return l, fmt.Errorf("cannot list the leases of %s: %w", s.hostName(), err)
	}
	return l, nil
}

// Release clears the records of dead holders on every host in the directory dir, and returns their leases. The
// Warnings of a host's Listing say which records it could not clear. It does not change a lease that is held.
// It is never necessary to call Release, because the GPU of a dead holder is free anyway.
func Release(ctx context.Context, dir string) ([]Listing, error) {
	spaces, _, err := spaces(dir)
	if err != nil {
		return nil, err
	}
	var all []Listing
	for _, s := range spaces {
		cleared := Listing{Host: s.host}
		err := s.ordered(ctx, func(ctx context.Context) error {
			sc, err := s.look(ctx)
			if err != nil {
				return err
			}
			for _, l := range sc.leases {
				if l.State != StateDead {
					continue
				}
				f, err := lock(filepath.Join(s.dir, l.file), os.O_RDWR)
				if errors.Is(err, errHeld) {
					continue
				}
				if err == nil {
					err = errors.Join(f.Truncate(0), f.drop())
				}
				if err != nil {
					cleared.Warnings = append(cleared.Warnings, err.Error())
					continue
				}
				cleared.Leases = append(cleared.Leases, l)
			}
			return nil
		})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			cleared.Warnings = append(cleared.Warnings, fmt.Sprintf("cannot release leases of %s: %v", s.hostName(), err))
		}
		if len(cleared.Leases)+len(cleared.Warnings) > 0 {
			all = append(all, cleared)
		}
	}
	return all, nil
}

// spaces returns a Space for every host that has files in dir. Warnings describe files
// whose names are not valid.
func spaces(dir string) (all []*Space, warnings []string, err error) {
	here, err := Open(dir, "")
	if err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(here.dir)
	if err != nil {
		return nil, nil, err
	}
	var hosts []string
	for _, e := range entries {
		if host, _, _, ok := split(e.Name()); ok && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	slices.SortFunc(hosts, strings.Compare) // @ is before all letters
	for _, host := range hosts {
		s := *here
		s.part = host
		if host != "@" {
			s.host = unescape(host)
		}
		if err := checkName(s.host); err != nil {
			warnings = append(warnings, fmt.Sprintf("files of the host %q in %q are passed over: %v", host, here.dir, err))
			continue
		}
		all = append(all, &s)
	}
	return all, warnings, nil
}
