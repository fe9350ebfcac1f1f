package home

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

// StopRequest asks a controller of a run to end the run. It is a file in the run's directory,
// for processes that cannot send the controller a signal. The controller takes the request by
// removing the file.
type StopRequest struct {
	To   job.Controller `json:"to"`   // the controller that is asked; other processes ignore the request
	By   job.Controller `json:"by"`   // the process that asks
	User string         `json:"user"` // the user of that process
	Now  bool           `json:"now"`  // end the ranks without a grace period
	At   time.Time      `json:"at"`
}

// requestPrefix is the beginning of the names of files with requests. The rest of each name is random.
const requestPrefix = "stop-"

// maxRequest limits the size of a request, in bytes.
const maxRequest = 64 << 10

// AskedStop is a StopRequest that has been made.
type AskedStop struct{ path string }

// AskStop leaves a request for the run's controller in the run's directory. Only the user who
// asks can read the file.
func (r Run) AskStop(q StopRequest) (AskedStop, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return AskedStop{}, err
	}
	path, err := r.ask(requestPrefix, text)
	return AskedStop{path}, err
}

// ask writes a file for the run's controller, and returns the path of the file.
func (r Run) ask(prefix string, text []byte) (string, error) {
	path := filepath.Join(r.Dir, prefix+rand.Text())
	if err := atomicfile.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return "", fmt.Errorf("cannot ask the controller of run %s: %w", r.ID, err)
	}
	return path, nil
}

// Taken reports whether the controller has taken the request. Taken tries to open the file,
// because a network file system does not answer an open from its cache.
func (a AskedStop) Taken() bool {
	file, err := safefile.Open(a.path)
	if err == nil {
		_ = file.Close()
	}
	return errors.Is(err, fs.ErrNotExist)
}

// Withdraw withdraws the request. It returns false if the controller has it already.
func (a AskedStop) Withdraw() (bool, error) {
	err := os.Remove(a.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot take the request back: %w", err)
	}
	return true, nil
}

// TakeStops takes the requests for the controller c, in no particular order. It leaves other
// files and requests for other controllers alone. It opens the run's directory, so that a
// network file system does not answer from its cache.
func (r Run) TakeStops(c job.Controller) ([]StopRequest, error) {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot look for requests to end run %s: %w", r.ID, err)
	}
	var taken []StopRequest
	for _, e := range entries {
		path := filepath.Join(r.Dir, e.Name())
		if !strings.HasPrefix(e.Name(), requestPrefix) || !e.Type().IsRegular() {
			continue
		}
		if q, ok := readRequest(path); ok && q.To == c && os.Remove(path) == nil {
			taken = append(taken, q)
		}
	}
	return taken, nil
}

// readRequest reads a request. It returns false if the file is gone or has no request.
func readRequest(path string) (q StopRequest, ok bool) {
	text, err := safefile.ReadFile(path, maxRequest)
	return q, err == nil && json.Unmarshal(text, &q) == nil
}
