package curveview

import (
	"context"
	"fmt"
	"math"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/safefile"
)

// recorded is the File.Format of a journal.
const recorded = "journal"

// maxRecorded is the largest number of losses that are kept of a journal. If there are more, the last ones are kept.
const maxRecorded = 1 << 20

// readJournal returns the losses that ranks have reported in the last attempt of a run. It uses the lowest
// rank that has reported any. Losses that programs write to GANGRUN_PROGRESS_FD are also in the journal.
func readJournal(ctx context.Context, path string) (File, []*series, int64, error) {
	file := File{Path: path, Format: recorded, Series: []string{}}
	in, err := safefile.Open(path)
	if err != nil {
		return file, nil, 0, fmt.Errorf("read %q: %w", path, err)
	}
	defer in.Close()
	byRank, attempt, total := map[int]*series{}, 0, int64(0)
	_, err = journal.Scan(in, func(e job.Event) bool {
		p := e.Progress
		if e.Kind != job.KindProgress || p == nil || !p.HasLoss() || e.Attempt == 0 {
			return ctx.Err() == nil
		}
		if e.Attempt != attempt {
			byRank, attempt = map[int]*series{}, e.Attempt
		}
		if byRank[e.Rank] == nil {
			byRank[e.Rank] = newSeries("loss", path)
		}
		switch {
		case p.Restarts:
			total = 0 // Total is the number of steps of one epoch
		case p.Total > 0:
			total = p.Total
		}
		s := byRank[e.Rank]
		s.add(point{p.At(), float64(e.Time.UnixNano()) / 1e9, p.LossValue()})
		if len(s.points) > maxRecorded {
			s.points = append(s.points[:0], s.points[maxRecorded/2:]...)
		}
		return ctx.Err() == nil
	})
	if err != nil || len(byRank) == 0 {
		return file, nil, 0, err
	}
	lowest := math.MaxInt
	for rank := range byRank {
		lowest = min(lowest, rank)
	}
	file.Series = append(file.Series, "loss")
	return file, []*series{byRank[lowest]}, total, ctx.Err()
}
