// Package screen shows the output of a gang of ranks to a person. It writes the ranks' standard
// output to that of gangrun, and their standard error to that of gangrun, line by line. It puts
// the rank before each line, and shows gangrun's own messages between the lines.
//
// The prefix of a line has the rank, as in "[3]", or the rank and host, as in "[3 h2]". A mark
// follows, and then blanks up to a common column. The mark is empty for standard output, and "!"
// for standard error. If the Screen had to show other text in the middle of a rank's line, a "+"
// marks the rest of that line:
//
//	[3 h2]   epoch 1
//	[3 h2]!  UserWarning: slow loader
//	[12 h2]  epoch 1
//	[12 h2]+ and what was still to come of it
//
// A rank cannot move the cursor, change the terminal or forge another rank's line: the Screen
// passes on only text, tabs, newlines and, if the Stream has colour, colours. It replaces invalid
// UTF-8 by U+FFFD, and removes control characters and invisible characters. Without the prefix, a
// Stream that is not a terminal gets the bytes of the ranks unchanged. Even then, the lines of
// different ranks are not mixed: the Screen writes each line as a whole.
//
// On a terminal, progress bars and unfinished lines (prompts) have rows of their own between
// the text and the status line. The Screen redraws these rows in place. Without a terminal, it
// writes the last state of each progress bar, and meanwhile one state every ten seconds.
//
// The package starts no goroutines. Everything that depends on time happens in Flush, which the
// caller calls about ten times a second. The caller must also ignore or handle SIGPIPE.
// Otherwise the Go runtime ends the program at the first write to a closed standard output.
package screen

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// pieceSize, in bytes, is as much of an unfinished line as is held.
	pieceSize = 64 << 10
	// promptAfter is how long an unfinished line has to be left alone until
	// a terminal shows it.
	promptAfter = 200 * time.Millisecond
	// partialAfter is the same time for an output that is not a terminal. It is longer, because a
	// line that is written in part is broken when another rank writes.
	partialAfter = time.Second
	// redrawEvery is the least time between two states of the same bars.
	redrawEvery = 200 * time.Millisecond
	// barEvery is the least time between two states of one bar where there
	// is no terminal.
	barEvery = 10 * time.Second
)

// Options say where a Screen writes and how its lines look.
type Options struct {
	// Out gets the ranks' standard output. Err gets their standard error and gangrun's own
	// messages. Both may be the same file or terminal.
	Out, Err Stream
	// Ranks is the size of the gang, for the width of the prefix.
	Ranks int
	// Hosts shows the host's name in the prefix.
	Hosts bool
	// Prefix puts the rank before each line.
	Prefix bool
}

// Screen shows the output of all ranks and gangrun's own messages. Its methods may be called
// from several goroutines. If the terminal is stopped (Ctrl-S), or a pipe is full, a write
// blocks, and all other calls wait for it. So a fast gang cannot fill the memory.
type Screen struct {
	opts Options

	mu      sync.Mutex
	out     *sink
	err     *sink     // may be out
	sources []*source // by rank, standard output before standard error
	turn    uint64    // counts calls of Output

	live *liveRows // nil if there is no terminal
	hold bool      // the live rows are not to be drawn again before the next Flush

	first      error // the first write error
	unreported error // write errors that no caller has been told of
}

// New returns a Screen that writes to opts.Out and opts.Err.
func New(opts Options) *Screen {
	s := &Screen{opts: opts, out: &sink{Stream: opts.Out}, err: &sink{Stream: opts.Err}}
	if opts.Out.same(opts.Err) {
		s.err = s.out
	}
	switch {
	case opts.Err.Terminal:
		s.live = &liveRows{sink: s.err}
	case opts.Out.Terminal:
		s.live = &liveRows{sink: s.out}
	}
	s.live.measure()
	return s
}

// Output shows the next bytes of a rank's standard output or standard error. data may begin and
// end anywhere in a line. Output does not keep data after it returns.
//
// The error is that of a failed write to Out or Err. The write may have been that of an earlier
// call of any method. Each error is returned once. The Screen drops later output to the same
// Stream without an error, so that a closed pipe does not end a gang. The method Err returns
// the first error again.
func (s *Screen) Output(rank int, host string, stderr bool, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	f := s.source(rank, host, stderr)
	if !f.sink.dead {
		f.take(data)
	}
	return s.settle()
}

// EndOfStream records that the rank will write no more to the stream. It shows an unfinished
// line, and ends that line. The error is as in Output.
func (s *Screen) EndOfStream(rank int, stderr bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.find(key(rank, stderr)); ok {
		s.sources[i].end()
		s.sources = slices.Delete(s.sources, i, i+1)
	}
	return s.settle()
}

// Flush shows progress bars, and lines that have been unfinished for some time. now is the
// present time; it must not be earlier than in the last call. The error is as in Output.
func (s *Screen) Flush(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.sources {
		f.tick(now)
	}
	s.hold = false
	if l := s.live; l != nil && now.Sub(l.refreshed) >= redrawEvery {
		l.refreshed = now
		s.refresh()
	}
	return s.settle()
}

// Close ends all streams as EndOfStream does, and removes the progress bars and the status
// line from the terminal. Say, Error, Hint, and Output of whole lines still work after it.
func (s *Screen) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.sources {
		f.end()
	}
	s.sources = nil
	if s.live != nil {
		s.live.erase()
		s.live = nil
	}
	return s.settle()
}

// Err returns the first error of a write, or nil.
func (s *Screen) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// key numbers the ranks' streams in the order in which they are shown.
func key(rank int, stderr bool) int {
	if stderr {
		return 2*rank + 1
	}
	return 2 * rank
}

// find returns where the source with the key is or belongs.
func (s *Screen) find(key int) (int, bool) {
	return slices.BinarySearchFunc(s.sources, key, func(f *source, key int) int {
		return cmp.Compare(f.key, key)
	})
}

// source returns the source of the rank's stream, a new one if need be.
func (s *Screen) source(rank int, host string, stderr bool) *source {
	i, ok := s.find(key(rank, stderr))
	if !ok {
		k := s.out
		if stderr {
			k = s.err
		}
		f := &source{screen: s, sink: k, key: key(rank, stderr)}
		f.name(host)
		s.sources = slices.Insert(s.sources, i, f)
	}
	f := s.sources[i]
	if f.host != host {
		f.name(host)
	}
	return f
}

// begin must be called before anything is added to k's buffer. It removes the live rows, because
// the text goes to their place.
func (s *Screen) begin(k *sink) {
	if s.live == nil {
		return
	}
	if !k.Terminal {
		// The reader of k may be on the same terminal (| tee), and its text must come first.
		s.hold = true
	}
	if s.live.drawn {
		s.live.erase()
		if k != s.live.sink {
			s.drain(s.live.sink)
		}
	}
}

// settle writes what the call has produced, and returns the errors that no caller has been told of.
func (s *Screen) settle() error {
	s.show()
	err := s.unreported
	s.unreported = nil
	return err
}

// show writes what is in the buffers, then the live rows.
func (s *Screen) show() {
	if s.live == nil || s.live.sink != s.out {
		s.drain(s.out)
	}
	if s.live != nil && !s.hold {
		s.live.draw(s.sources)
	}
	s.drain(s.err)
	s.drain(s.out)
}

// relieve writes k's buffer when it has grown large.
func (s *Screen) relieve(k *sink) {
	if len(k.buf) >= pieceSize {
		s.drain(k)
	}
}

// drain writes k's buffer.
func (s *Screen) drain(k *sink) {
	if err := k.drain(); err != nil {
		if s.first == nil {
			s.first = err
		}
		s.unreported = errors.Join(s.unreported, err)
	}
}
