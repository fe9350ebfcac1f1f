package follow

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gangrun/gangrun/internal/growing"
	"github.com/gangrun/gangrun/internal/job"
)

// tail is a stream of a rank that is shown.
type tail struct {
	rank   job.Rank
	stderr bool
	*growing.File
}

// open switches to the logs of the newest attempt. If skip is true, it begins at the ends of the logs, because the
// output before that was printed before the user attached.
func (f *follower) open(ctx context.Context, skip bool) {
	last := f.show.Report().Last()
	if last == nil || last.Logs == "" || last.Number == f.attempt {
		return
	}
	f.close(ctx)
	f.attempt = last.Number
	f.watch.Add(last.Logs)
	for _, r := range last.Placement {
		if mode := f.show.Spec.Output; mode != job.OutputAll && (mode != job.OutputFirst || r.Rank != 0) {
			continue
		}
		for _, stream := range []string{"out", "err"} {
			path, offset := filepath.Join(last.Logs, job.LogName(r.Rank, stream)), int64(0)
			if info, err := os.Stat(path); err == nil && skip {
				offset = info.Size()
			}
			f.tails = append(f.tails, tail{r, stream == "err", growing.NewFile(path, offset)})
		}
	}
}

// close shows the rest of the attempt that was shown.
func (f *follower) close(ctx context.Context) {
	f.more(ctx, growing.Changes{All: true})
	for _, t := range f.tails {
		_ = f.show.Screen.EndOfStream(t.rank.Rank, t.stderr)
		f.reader.Close(t.File)
	}
	f.tails = nil
}

// read shows the output of the ranks until growth ends. After that, it shows the rest, unless ctx has ended.
func (f *follower) read(ctx, growth context.Context) {
	for {
		changes, err := f.watch.Next(growth)
		if err != nil {
			break
		}
		if changes.All {
			f.open(ctx, false)
		}
		f.more(ctx, changes)
	}
	if ctx.Err() == nil {
		f.open(ctx, false)
		f.close(ctx)
	}
}

// more shows what was added to the logs that have changed.
func (f *follower) more(ctx context.Context, changes growing.Changes) {
	for _, t := range f.tails {
		if !changes.Has(t.Path()) {
			continue
		}
		err := f.reader.More(ctx, t.File, changes.All, func(piece []byte) {
			f.heard.Add(1)
			_ = f.show.Screen.Output(t.rank.Rank, t.rank.Host, t.stderr, piece)
		})
		if err != nil {
			f.show.Say(fmt.Sprintf("note: what rank %d prints cannot be read: %v", t.rank.Rank, err))
		}
	}
}
