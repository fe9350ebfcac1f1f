package environ

import (
	"slices"
	"testing"
)

func TestLookup(t *testing.T) {
	env := []string{"A=1", "AB=2", "A=3=4", "EMPTY=", "junk"}
	for name, want := range map[string]string{"A": "3=4", "AB": "2", "EMPTY": "", "ABSENT": "", "junk": "", "": ""} {
		if got := Lookup(env, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestOverlay(t *testing.T) {
	base := []string{"A=1", "B=2", "junk", "=x", "A=9"}
	before := slices.Clone(base)
	got := Overlay(base, []string{"C=3", "B=two"}, nil, []string{"C=4=5", "D=", "B=two"})
	if want := []string{"A=9", "B=two", "C=4=5", "D="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Equal(base, before) {
		t.Errorf("the base has changed to %q", base)
	}
	if got := Overlay(nil); len(got) != 0 {
		t.Errorf("nothing over nothing is %q", got)
	}
}
