package userenv

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestForRanks checks that ranks on other hosts get the variables of this environment, with the functions of a shell.
// Variables that belong to this machine or login are left out.
func TestForRanks(t *testing.T) {
	env := []string{"PATH=/bin", "HOME=/home/ana", "BASH_FUNC_module%%=() {  echo hi\n}", "SSH_TTY=/dev/pts/1", "HOMES=/home", "XDG_RUNTIME_DIR=/run/user/1"}
	if got, want := ForRanks(env), []string{"PATH=/bin", "BASH_FUNC_module%%=() {  echo hi\n}", "HOMES=/home"}; !slices.Equal(got, want) {
		t.Errorf("%q go to ranks, want %q", got, want)
	}
}

func TestEnvironmentsAreComparedByName(t *testing.T) {
	spec := job.Spec{Env: map[string]string{"SET": "by the job"}, Secret: []string{"TOKEN"}}
	dir := t.TempDir()
	if m, err := ReadHashes(dir); m != nil || err != nil {
		t.Errorf("of no file: %v, %v", m, err)
	}
	before := []string{"PATH=/bin", "LANG=C", "EMPTY=", "TOKEN=a", "SET=a", "DISPLAY=:0", "OLD=1", "OLDER=1"}
	if err := HashesOf(before, spec).Write(dir); err != nil {
		t.Fatal(err)
	}
	kept, err := ReadHashes(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		now  []string
		want string
	}{
		"the same": {before, ""},
		"in another order, and elsewhere": {
			[]string{"OLDER=1", "OLD=1", "SET=b", "DISPLAY=:1", "TOKEN=b", "EMPTY=", "LANG=C", "PATH=/bin", "SSH_TTY=/dev/pts/1"}, ""},
		"changed, lost and new": {
			[]string{"PATH=/usr/bin", "LANG=C", "EMPTY=x", "NEW=1"}, "another value of EMPTY, PATH; without OLD, OLDER; with NEW"},
		"nothing": {nil, "without EMPTY, LANG, OLD, OLDER, PATH"},
	} {
		if got := kept.Difference(HashesOf(test.now, spec)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
