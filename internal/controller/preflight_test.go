package controller

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/supervisor"
)

// TestStalled checks that an agent that cannot look at files in time is reported as a problem of a file system. Other
// errors must not change.
func TestStalled(t *testing.T) {
	late := fmt.Errorf("survey host h1: %w", &launcher.LookError{Host: "h1", What: "the directory \"/w\""})
	if err := stalled(late); !supervisor.OfStorage(err) || !errors.Is(err, late) && !errors.As(err, new(*launcher.LookError)) {
		t.Errorf("%v is no error of a file system", err)
	}
	other := errors.New("x")
	if err := stalled(other); err != other || supervisor.OfStorage(err) {
		t.Errorf("%v became %v", other, err)
	}
}
