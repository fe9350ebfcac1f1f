package agent

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/wire"
)

// settings has what a controller sets for this host by calling Hello. Another call of Hello may replace the settings at
// any time.
type settings struct {
	mu     sync.Mutex
	host   string
	tmpdir string   // TMPDIR of a simulated host; empty on other hosts
	env    []string // environment of the agent, with the TMPDIR of a simulated host
}

func newSettings() *settings {
	// Without this variable, Python buffers its output to a pipe. gangrun would then see progress late, and a kill
	// would lose the last lines. The user's own value takes precedence.
	return &settings{env: environ.Overlay([]string{"PYTHONUNBUFFERED=1"}, environ.Inherited(os.Environ()))}
}

func (s *settings) set(r *wire.HelloRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = r.Host
	if dir := string(r.Tmpdir); dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		s.tmpdir = dir
		s.env = environ.Overlay(s.env, []string{"TMPDIR=" + dir})
	}
	s.env = environ.Overlay(s.env, environ.Inherited(wire.Strings(r.Env)))
	return nil
}

// get returns the host's name and the agent's environment.
func (s *settings) get() (host string, env []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.host, s.env
}

// cleanTmpdir removes the files that the ranks of a simulated host have left in the host's TMPDIR.
func (s *settings) cleanTmpdir() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tmpdir == "" {
		return nil
	}
	if !strings.Contains(s.tmpdir, "gangrun") {
		return fmt.Errorf("refuse to remove %q: not a directory of gangrun's", s.tmpdir)
	}
	return os.RemoveAll(s.tmpdir)
}
