package runlogs

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/growing"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/screen"
)

// logShow shows the logs of a run.
type logShow struct {
	Query
	watch  *growing.Watch
	reader growing.Reader
	files  map[string]*growing.File // by path; those of earlier attempts, too
	screen *screen.Screen           // nil until there is something to show
	dir    string                   // of the logs of the attempt that is shown
	shown  []File                   // the logs of that attempt
	stop   context.CancelFunc       // called when the screen takes nothing more
	err    error                    // not everything was shown
}

// Show prints the logs to standard output and standard error. If follow is true, Show goes on until
// the run has ended.
func (q Query) Show(ctx context.Context, run home.Run, follow bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := logShow{Query: q, watch: growing.NewWatch(), files: map[string]*growing.File{}, stop: stop}
	defer s.watch.Close()
	for {
		// Asked before the files are read: what it wrote last is then in them.
		summary, err := run.Summary()
		if err != nil {
			return err
		}
		files, err := q.Files(summary)
		if err != nil {
			return err
		}
		if s.screen == nil && (len(files) > 0 || !follow) {
			s.screen = screen.New(screen.Options{
				Out: screen.FileStream(os.Stdout, os.Getenv), Err: screen.FileStream(os.Stderr, os.Getenv),
				Ranks: summary.Ranks, Prefix: q.Rank < 0 && summary.Ranks > 1,
			})
		}
		_, dir := q.where(summary)
		s.turnTo(ctx, dir, files)
		s.watch.Add(dir)
		s.read(ctx, files, growing.Changes{All: true})
		if ctx.Err() != nil || !follow || summary.State.Final() {
			return s.end(ctx, run, len(files))
		}
		for asked := time.Now(); time.Since(asked) < growing.PollEvery; {
			changes, err := s.watch.Next(ctx)
			if err != nil {
				break
			}
			s.read(ctx, files, changes)
			if s.screen != nil {
				_ = s.screen.Flush(time.Now())
			}
		}
	}
}

// turnTo shows the rest of the logs of the attempt before, if dir has the logs of another attempt.
func (s *logShow) turnTo(ctx context.Context, dir string, files []File) {
	if s.screen != nil && s.dir != dir {
		s.read(ctx, s.shown, growing.Changes{All: true})
		for _, f := range s.shown {
			_ = s.screen.EndOfStream(f.Rank, f.Stream == "err") // a line without an end is not continued by the next attempt
		}
	}
	s.dir, s.shown = dir, files
}

// read shows what has come to the files that have changed.
func (s *logShow) read(ctx context.Context, files []File, changes growing.Changes) {
	for _, f := range files {
		if !changes.Has(f.Path) {
			continue
		}
		file := s.files[f.Path]
		if file == nil {
			file = growing.NewFile(f.Path, 0)
			s.files[f.Path] = file
		}
		err := s.reader.More(ctx, file, changes.All, func(piece []byte) {
			if s.screen.Output(f.Rank, "", f.Stream == "err", piece) != nil {
				s.stop() // end returns the error
			}
		})
		if err != nil {
			s.err = failure.Exit(failure.CodeInternal)
			s.screen.Error(fmt.Sprintf("the log of rank %d cannot be read: %v", f.Rank, err))
			if hint := failure.Hint(err); hint != "" {
				s.screen.Hint(hint)
			}
		}
	}
}

// end ends the show of a run that has so many logs now.
func (s *logShow) end(ctx context.Context, run home.Run, logs int) error {
	if logs == 0 && s.Rank < 0 && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "gangrun: note: no rank of run %[1]s has been started: gangrun status %[1]s tells how it is\n", run.ID)
	}
	if s.screen == nil {
		return nil
	}
	if logs == 0 && s.Rank >= 0 {
		return failure.Usage("gangrun logs -o json lists the files", "run %s has no log of rank %d", run.ID, s.Rank)
	}
	_ = s.screen.Close()
	if err := s.screen.Err(); err != nil {
		return err
	}
	return s.err
}
