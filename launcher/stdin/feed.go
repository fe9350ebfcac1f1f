package stdin

import (
	"context"
	"fmt"
)

// pieceBytes is the size of a piece of standard input.
const pieceBytes = 32 << 10

// Sink sends a piece of standard input to one rank. An error means that the rank reads no more
// input.
type Sink func(piece []byte) error

// Missing returns a message if an attempt cannot read all of the input again, because not all of it was kept.
// Otherwise it returns "".
func (in *Input) Missing() string {
	if !in.lost {
		return ""
	}
	return fmt.Sprintf("this attempt gets only what is left of standard input: %v", in.stuck)
}

// Feed sends the input to sinks, which are the ranks of an attempt, until the input ends, ctx ends, or no rank
// reads any more. If trial is true, Feed sends only that part of the input which the gang can read again, and
// then waits until ctx ends.
func (in *Input) Feed(ctx context.Context, trial bool, sinks []Sink) {
	offset := int64(0)
	for buffer := make([]byte, pieceBytes); ; {
		if trial && (in.kind == inputTerminal || offset == in.has() && in.full(len(buffer))) {
			<-ctx.Done() // the ranks' standard input stays open meanwhile
			return
		}
		n, err := in.read(ctx, offset, buffer)
		offset += int64(n)
		open := 0
		for _, send := range sinks {
			if send(buffer[:n]) == nil {
				open++
			}
		}
		if err != nil || open == 0 {
			return
		}
	}
}
