// Package screen is what a person sees of a gang of ranks: their standard
// output on gangrun's, their standard error on gangrun's, line by line, each
// line with the rank that it is from, and gangrun's own words among them.
//
// The prefix is "[3]", or "[3 h2]" where hosts are shown, then a mark, then blanks up to a common
// column. The mark is empty for standard output and "!" for standard error; if other text had to be
// shown in the middle of a rank's line, a "+" marks the rest of that line:
//
//	[3 h2]   epoch 1
//	[3 h2]!  UserWarning: slow loader
//	[12 h2]  epoch 1
//	[12 h2]+ and what was still to come of it
//
// Nothing that a rank writes can move the cursor, change the terminal or pass for another rank's
// line: only text, tabs, newlines and (where the stream has colour) colours are let through.
// Invalid UTF-8 becomes U+FFFD, controls and invisible characters vanish. Without prefix, an output
// that is not a terminal gets the bytes of the ranks unchanged. Even then, lines of different ranks
// are not mixed: each is written as a whole.
//
// On a terminal, progress bars and unfinished lines (prompts) have rows of
// their own under the text, redrawn in place, above the status line. Where
// there is no terminal, only the last state of a progress bar is written, and
// one state every ten seconds of a long one.
//
// There is no goroutine here: all that depends on time happens in Flush, which
// the owner calls about ten times a second. The owner must also ignore or
// handle SIGPIPE, else the Go runtime ends the program at the first write to a
// closed standard output.
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
	// partialAfter is the same for what is no terminal. It is longer, since
	// a line written in part is broken when another rank writes.
	partialAfter = time.Second
	// redrawEvery is the least time between two states of the same bars.
	redrawEvery = 200 * time.Millisecond
	// barEvery is the least time between two states of one bar where there
	// is no terminal.
	barEvery = 10 * time.Second
)

// Options say where a Screen writes and how its lines look.
type Options struct {
	// Out and Err take the ranks' standard output and standard error; Err
	// also takes gangrun's own words. They may be the same file or terminal.
	Out, Err Stream
	// Ranks is the size of the gang, for the width of the prefix.
	Ranks int
	// Hosts shows the host's name in the prefix.
	Hosts bool
	// Prefix puts the rank before each line.
	Prefix bool
}

// Screen shows the output of all ranks and gangrun's own messages. Its methods may be
// called from several goroutines. If the terminal is stopped (Ctrl-S), or a pipe is full, a
// write blocks, and with it every other call. This backpressure keeps a fast gang from
// filling the memory.
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

// Output shows the next bytes of a rank's standard output or standard error. data may begin
// and end anywhere in a line. Output does not keep it.
//
// The error is that of a failed write, to either stream and by any method. It is returned
// once. Later output to that stream is dropped without an error, so that a gang survives a
// closed pipe. Err returns the error again.
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

// EndOfStream records that the rank will write no more to the stream. An unfinished line is
// shown and ended. The error is as that of Output.
func (s *Screen) EndOfStream(rank int, stderr bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.find(key(rank, stderr)); ok {
		s.sources[i].end()
		s.sources = slices.Delete(s.sources, i, i+1)
	}
	return s.settle()
}

// Flush shows what is due at the time now: lines that have been unfinished for a while, and
// progress bars. now must never be earlier than in the last call. The error is as that of
// Output.
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

// begin must come before anything is put into k's buffer: it takes the live
// rows away, on whose place the text goes.
func (s *Screen) begin(k *sink) {
	if s.live == nil {
		return
	}
	if !k.Terminal {
		// Its reader may be on the same terminal (| tee) and has to come
		// first.
		s.hold = true
	}
	if s.live.drawn {
		s.live.erase()
		if k != s.live.sink {
			s.drain(s.live.sink)
		}
	}
}

// settle shows what the call has come to and returns the errors that no caller
// has been told of.
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
