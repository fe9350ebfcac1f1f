package curve

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// mllog is the beginning of the lines that MLPerf's logging library prints. JSON follows it.
const mllog = ":::MLLOG "

// notJSON matches the numbers that Python's json module writes and that JSON does not have.
var notJSON = regexp.MustCompile(`: (NaN|-?Infinity)\b`)

// parseMLLog reads the JSON of a line of MLPerf's log. The progress is in the metadata: the step, or else the
// number of samples, or else the epoch.
func parseMLLog(text []byte) (job.Progress, bool) {
	var line struct {
		Key      string          `json:"key"`
		Value    json.RawMessage `json:"value"`
		Metadata struct {
			Step    *float64 `json:"step"`
			StepNum *float64 `json:"step_num"`
			Samples *float64 `json:"samples_count"`
			Epoch   *float64 `json:"epoch_num"`
		} `json:"metadata"`
	}
	var other *json.UnmarshalTypeError // a value that is not a number does not matter here
	if err := json.Unmarshal(notJSON.ReplaceAll(text, []byte(`: "$1"`)), &line); err != nil && !errors.As(err, &other) {
		return job.Progress{}, false
	}
	p := job.Progress{Epoch: -1}
	if at := line.Metadata.Epoch; at != nil && counts(*at) {
		p.Epoch = int64(*at)
	}
	found := false
	for _, at := range []*float64{line.Metadata.Step, line.Metadata.StepNum, line.Metadata.Samples} {
		if !found && at != nil && counts(*at) {
			p.Step, found = int64(*at), true
		}
	}
	if !found && p.Epoch >= 0 {
		p.Step, p.ByEpoch, found = p.Epoch, true, true
	}
	if !found {
		return job.Progress{}, false
	}
	if line.Key == "train_loss" {
		if loss, err := strconv.ParseFloat(strings.Trim(string(line.Value), `"`), 64); err == nil {
			p.SetLoss(loss)
		}
	}
	return p, true
}

// counts reports whether a number can be a count of steps or epochs.
func counts(v float64) bool { return v >= 0 && v <= 1e15 }
