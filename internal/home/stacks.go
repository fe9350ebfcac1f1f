package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

// Prefixes of names of files in a run's directory. A process asks the run's controller for the stacks of its ranks by a
// file with stacksPrefix. The file with answerPrefix has the answer. The rest of both names is the same.
const (
	stacksPrefix = "stacks-"
	answerPrefix = "stacks-answer-"
)

// maxAnswer limits the size of an answer, in bytes.
const maxAnswer = 256 << 20

// StacksRequest asks a controller for the stacks of the ranks of its run.
type StacksRequest struct {
	To job.Controller `json:"to"` // the controller that is asked; other processes ignore the request
	By job.Controller `json:"by"` // the process that asks
	At time.Time      `json:"at"`
}

// Stacks says where in their programs the ranks of a run are.
type Stacks struct {
	Run     string    `json:"run"`
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	// Took is how long the collection took.
	Took job.Duration `json:"took"`
	// Refused is the reason why there are no stacks. It is empty if there are stacks.
	Refused string `json:"refused,omitempty"`
	// Groups has groups of ranks with equal stacks. Missing has the ranks whose hosts have not answered in time.
	Groups  []job.StackGroup `json:"groups"`
	Missing []int            `json:"missing"`
	Stacks  []job.RankStack  `json:"stacks"`
}

// AskedStacks is a StacksRequest that has been made.
type AskedStacks struct {
	run             Run
	request, answer string // paths
}

// AskStacks leaves a request for the run's controller in the run's directory.
func (r Run) AskStacks(q StacksRequest) (AskedStacks, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return AskedStacks{}, err
	}
	path, err := r.ask(stacksPrefix, text)
	id := strings.TrimPrefix(filepath.Base(path), stacksPrefix)
	return AskedStacks{r, path, r.answerPath(id)}, err
}

// Answer returns the answer to the request. It returns nil if there is no answer yet.
func (a AskedStacks) Answer() (*Stacks, error) {
	a.run.refresh()
	text, err := safefile.ReadFile(a.answer, maxAnswer)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s Stacks
	if err := exact.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("cannot read the answer of the run's controller: %w", err)
	}
	return &s, nil
}

// Withdraw removes the request and its answer.
func (a AskedStacks) Withdraw() error {
	var all error
	for _, path := range []string{a.request, a.answer} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// TakeStacks takes the requests for the controller c, and returns their IDs. It leaves other files
// and requests for other controllers alone.
func (r Run) TakeStacks(c job.Controller) (ids []string, err error) {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot look for requests to run %s: %w", r.ID, err)
	}
	for _, e := range entries {
		id, ok := strings.CutPrefix(e.Name(), stacksPrefix)
		if !ok || strings.HasPrefix(e.Name(), answerPrefix) || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(r.Dir, e.Name())
		text, err := safefile.ReadFile(path, maxRequest)
		var q StacksRequest
		if err == nil && json.Unmarshal(text, &q) == nil && q.To == c && os.Remove(path) == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// AnswerStacks answers a request.
func (r Run) AnswerStacks(id string, s Stacks) error {
	text, err := exact.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Replace(r.answerPath(id), append(text, '\n'), 0o600)
}

// ForgetStacks removes the answer to a request, because the process that has asked may be gone.
func (r Run) ForgetStacks(id string) { _ = os.Remove(r.answerPath(id)) }

func (r Run) answerPath(id string) string { return filepath.Join(r.Dir, answerPrefix+id) }
