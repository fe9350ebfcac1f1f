package resumable

import (
	"errors"
	"fmt"
)

var (
	// ErrUnknownStream says that the peer is not the one that this stream has
	// been spoken with: it has no such stream, or has begun it anew and lost
	// what was on its way. Another carrier does not help; the stream should be
	// aborted.
	ErrUnknownStream = errors.New("the peer does not hold this stream")
	// ErrVersion says that the two sides speak different versions of this
	// package's protocol.
	ErrVersion = errors.New("the peer speaks another version")
	// ErrSuperseded says that a newer carrier has taken a carrier's place.
	ErrSuperseded = errors.New("superseded by a newer carrier")
	// ErrProtocol says that what came from the carrier is not the protocol of
	// this package. The stream is unharmed.
	ErrProtocol = errors.New("not what a stream's peer says")
)

// errEnded ends a Carry whose stream has ended in order in both directions.
var errEnded = errors.New("stream ended")

// Refused says that one side would not go on with a carrier. The stream is
// unharmed.
type Refused struct {
	// Reason is ErrUnknownStream, ErrVersion or ErrSuperseded, or nil for a
	// reason that this version does not know.
	Reason error
	// Text says more, in the words of the side that refused.
	Text string
	// ByPeer is whether the peer refused, not this side.
	ByPeer bool
}

func (r *Refused) Error() string {
	who := "refused"
	if r.ByPeer {
		who = "refused by the peer"
	}
	if r.Reason == nil {
		return fmt.Sprintf("%s: %s", who, r.Text)
	}
	return fmt.Sprintf("%s: %v: %s", who, r.Reason, r.Text)
}

// Unwrap returns the reason.
func (r *Refused) Unwrap() error { return r.Reason }

// reasons are the refusals by their code on the carrier, which is their index.
var reasons = []error{1: ErrUnknownStream, 2: ErrVersion, 3: ErrSuperseded}

func (r *Refused) code() byte {
	for code, reason := range reasons {
		if reason != nil && errors.Is(r.Reason, reason) {
			return byte(code)
		}
	}
	return 0
}

func refusal(code byte, text string) *Refused {
	r := &Refused{Text: text, ByPeer: true}
	if int(code) < len(reasons) {
		r.Reason = reasons[code]
	}
	return r
}
