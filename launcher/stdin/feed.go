package stdin

import (
	"context"
	"fmt"
)

// pieceBytes is the size of a piece of standard input.
const pieceBytes = 32 << 10

// Sink sends a piece of standard input to one rank. An error means that the rank takes no
// more.
type Sink func(piece []byte) error

// Missing returns what an attempt cannot read again because it was not kept; "" if it can
// read all of the input.
func (in *Input) Missing() string {
	if !in.lost {
		return ""
	}
	return fmt.Sprintf("this attempt gets only what is left of standard input: %v", in.stuck)
}

// Feed sends the input to all ranks of an attempt until the input or ctx ends, or no rank takes any
// more. A trial gets only input that can be given to the gang again. After that, Feed waits for the
// end of ctx.
func (in *Input) Feed(ctx context.Context, trial bool, to []Sink) {
	offset := int64(0)
	for buffer := make([]byte, pieceBytes); ; {
		if trial && (in.kind == inputTerminal || offset == in.has() && in.full(len(buffer))) {
			<-ctx.Done() // the ranks' standard input stays open meanwhile
			return
		}
		n, err := in.read(ctx, offset, buffer)
		offset += int64(n)
		open := 0
		for _, send := range to {
			if send(buffer[:n]) == nil {
				open++
			}
		}
		if err != nil || open == 0 {
			return
		}
	}
}
