package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gangrun/gangrun/internal/growing"
	"github.com/gangrun/gangrun/internal/job"
)

// tail is one stream of a rank that is shown.
type tail struct {
	rank   job.Rank
	stderr bool
	*growing.File
}

// open turns to the logs of the newest attempt. With over, it leaves out what they hold
// already, which was printed before anybody looked.
func (o *onlooker) open(ctx context.Context, over bool) {
	last := o.show.Report().Last()
	if last == nil || last.Logs == "" || last.Number == o.attempt {
		return
	}
	o.close(ctx)
	o.attempt = last.Number
	o.watch.Add(last.Logs)
	for _, r := range last.Placement {
		if mode := o.show.Spec.Output; mode != job.OutputAll && (mode != job.OutputFirst || r.Rank != 0) {
			continue
		}
		for _, stream := range []string{"out", "err"} {
			path, offset := filepath.Join(last.Logs, job.LogName(r.Rank, stream)), int64(0)
			if info, err := os.Stat(path); err == nil && over {
				offset = info.Size()
			}
			o.tails = append(o.tails, tail{r, stream == "err", growing.NewFile(path, offset)})
		}
	}
}

// close shows the rest of the attempt that was shown.
func (o *onlooker) close(ctx context.Context) {
	o.more(ctx, growing.Changes{All: true})
	for _, t := range o.tails {
		_ = o.show.Screen.EndOfStream(t.rank.Rank, t.stderr)
		o.reader.Close(t.File)
	}
	o.tails = nil
}

// read shows what the ranks print until growth ends, and then the rest, unless ctx has
// ended.
func (o *onlooker) read(ctx, growth context.Context) {
	for {
		changes, err := o.watch.Next(growth)
		if err != nil {
			break
		}
		if changes.All {
			o.open(ctx, false)
		}
		o.more(ctx, changes)
	}
	if ctx.Err() == nil {
		o.open(ctx, false)
		o.close(ctx)
	}
}

// more shows what has come to the logs that have changed.
func (o *onlooker) more(ctx context.Context, changes growing.Changes) {
	for _, t := range o.tails {
		if !changes.Has(t.Path()) {
			continue
		}
		err := o.reader.More(ctx, t.File, changes.All, func(piece []byte) {
			o.heard.Add(1)
			_ = o.show.Screen.Output(t.rank.Rank, t.rank.Host, t.stderr, piece)
		})
		if err != nil {
			o.show.Say(fmt.Sprintf("note: what rank %d prints cannot be read: %v", t.rank.Rank, err))
		}
	}
}
