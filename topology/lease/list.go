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

// Listing is what lies in the directory for one host.
type Listing struct {
	// Host is empty for this machine, or the name of a pretended host.
	Host   string  `json:"host"`
	Leases []Lease `json:"leases"`
	// Waiting are the gangs that wait, the oldest first.
	Waiting  []Waiter `json:"waiting"`
	Warnings []string `json:"warnings,omitempty"`
}

// List returns what lies in the directory dir, which is chosen as Open does, for
// every host: this machine first.
func List(ctx context.Context, dir string) ([]Listing, error) {
	spaces, err := spaces(dir)
	if err != nil {
		return nil, err
	}
	var all []Listing
	for _, s := range spaces {
		var sc scene
		err := s.ordered(ctx, func() (err error) {
			sc, err = s.look()
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("cannot list the leases of %s: %w", s.hostName(), err)
		}
		all = append(all, Listing{Host: s.host, Leases: sc.leases, Waiting: sc.waiters, Warnings: sc.warnings})
	}
	return all, nil
}

// Release clears the records of holders that are dead, on every host of the
// directory dir, and returns their leases. It touches nothing that anybody holds.
// Nobody waits for this: such a GPU is free anyway.
func Release(ctx context.Context, dir string) ([]Listing, error) {
	spaces, err := spaces(dir)
	if err != nil {
		return nil, err
	}
	var all []Listing
	var errs []error
	for _, s := range spaces {
		cleared := Listing{Host: s.host}
		err := s.ordered(ctx, func() error {
			sc, err := s.look()
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
					errs = append(errs, err)
					continue
				}
				cleared.Leases = append(cleared.Leases, l)
			}
			return nil
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot release leases of %s: %w", s.hostName(), err))
		}
		if len(cleared.Leases) > 0 {
			all = append(all, cleared)
		}
	}
	return all, errors.Join(errs...)
}

// spaces returns one Space for every host that has files in dir.
func spaces(dir string) ([]*Space, error) {
	here, err := Open(dir, "")
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(here.dir)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, e := range entries {
		if host, _, _, ok := split(e.Name()); ok && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	slices.SortFunc(hosts, strings.Compare) // @ is before all letters
	all := make([]*Space, len(hosts))
	for i, host := range hosts {
		s := *here
		s.part = host
		if host != "@" {
			s.host = unescape(host)
		}
		all[i] = &s
	}
	return all, nil
}
