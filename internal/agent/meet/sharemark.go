package meet

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/runclock"
	"github.com/gangrun/gangrun/internal/wire"
)

// shareLimit is how long a host looks for the files of the other hosts. A network file system may need that long to
// show the files of another host.
const shareLimit = 3 * time.Second

// shareEvery is the time between two looks.
const shareEvery = 100 * time.Millisecond

// shareMark is a set of files, one for each host. By these files, the hosts find out whether they share a directory.
type shareMark struct {
	dir    string
	secret []byte
}

// path returns the path of the file of a host, and the content of that file.
func (m shareMark) path(host string) (path, text string) {
	text = hex.EncodeToString(proof(m.secret, "file of "+host))
	return m.dir + "/.gangrun-" + text[:32] + ".tmp", text
}

func (m shareMark) write(host string) error {
	path, text := m.path(host)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		m.remove(host)
	}
	return err
}

func (m shareMark) remove(host string) {
	path, _ := m.path(host)
	_ = os.Remove(path) // if a file system refuses this, the survey fails, too
}

// look returns the hosts whose files are visible here. It waits for missing files until shareLimit has passed or ctx
// ends.
func (m shareMark) look(ctx context.Context, host string, peers []*wire.Peer) *job.SharedFact {
	begun := time.Now()
	ctx, cancel := runclock.WithTimeoutCause(ctx, shareLimit, context.DeadlineExceeded)
	defer cancel()
	left := []string{host}
	for _, p := range peers {
		if p.Wrote {
			left = append(left, p.Host)
		}
	}
	fact := &job.SharedFact{}
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	for {
		// When a directory is opened, NFS asks the server whether it has changed.
		if dir, err := os.Open(m.dir); err == nil {
			_ = dir.Close()
		}
		left = slices.DeleteFunc(left, func(host string) bool {
			path, want := m.path(host)
			data, err := os.ReadFile(path)
			seen := err == nil && string(data) == want
			if seen {
				fact.Sees = append(fact.Sees, host)
			}
			return seen
		})
		if len(left) == 0 || ctx.Err() != nil {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done(): // one last look follows
		}
	}
	slices.Sort(fact.Sees)
	fact.Time = time.Since(begun)
	return fact
}
