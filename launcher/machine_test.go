package launcher

import (
	"errors"
	"slices"
	"testing"

	"github.com/gangrun/gangrun/launcher/network"
)

// TestProbeOfOneMachineTwice checks that Probe reports a machine with several names before it chooses a network.
func TestProbeOfOneMachineTwice(t *testing.T) {
	f := &fakeHosts{machines: map[string]string{"h1": "a", "h2": "b", "h3": "a", "h4": "c"}}
	hosts := slices.Clone(fourHosts())
	l := New(Options{Dialer: f, Hosts: hosts})
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	found, unreached, err := l.Probe(t.Context())
	var duplicate *network.DuplicateError
	if !errors.As(err, &duplicate) || len(unreached) > 0 || len(found) != 4 {
		t.Fatalf("found %v, not reached %v, %v", found, unreached, err)
	}
	if got, want := duplicate.Hint(), "name it once, with as many slots as it is to have: --hosts h1:N, or h1 slots=N in a hostfile"; got != want {
		t.Errorf("the hint is %q, want %q", got, want)
	}
}
