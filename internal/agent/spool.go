package agent

import (
	"context"
	"io/fs"
	"path/filepath"

	"github.com/gangrun/gangrun/internal/wire"
)

// spooled reports whether a spool holds anything that ranks have printed.
func spooled(dir string) (found bool) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // what cannot be read is none
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil && info.Size() > 0 {
				found = true
				return fs.SkipAll
			}
		}
		return nil
	})
	return found
}

// Keep implements wire.AgentServer.
func (s *server) Keep(context.Context, *wire.KeepRequest) (*wire.KeepReply, error) {
	s.line.keep.Store(true)
	return &wire.KeepReply{}, nil
}
