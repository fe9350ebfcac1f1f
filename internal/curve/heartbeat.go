package curve

import (
	"bytes"
	"math"
	"strconv"

	"github.com/gangrun/gangrun/internal/job"
)

// heartbeat is the beginning of the lines that a program writes to the descriptor GANGRUN_PROGRESS_FD.
const heartbeat = "gangrun: progress "

const (
	maxMetrics = 16 // values of a line
	maxName    = 64 // bytes of a name
)

// Heartbeat reads a line by which a program itself reports its progress: "gangrun: progress STEP [KEY=VALUE
// ...]". The values of all keys except total, epoch and loss become the Metrics of the result. Their number is
// limited. The second result is false if the line has another form.
func Heartbeat(line []byte) (job.Progress, bool) {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte(heartbeat))
	if !ok {
		return job.Progress{}, false
	}
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return job.Progress{}, false
	}
	p, ok := whole(fields[0])
	if !ok {
		return job.Progress{}, false
	}
	for _, field := range fields[1:] {
		key, text, _ := bytes.Cut(field, []byte("="))
		value, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			continue
		}
		switch string(key) {
		case "total":
			if counts(value) {
				p.Total = int64(value)
			}
		case "epoch":
			if counts(value) {
				p.Epoch = int64(value)
			}
		case "loss":
			p.SetLoss(value)
		default:
			if math.IsNaN(value) || math.IsInf(value, 0) || len(key) > maxName || len(p.Metrics) == maxMetrics {
				continue
			}
			if p.Metrics == nil {
				p.Metrics = map[string]float64{}
			}
			p.Metrics[string(key)] = value
		}
	}
	return p, true
}
