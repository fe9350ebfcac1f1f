package resumable

import (
	"errors"
	"fmt"
)

var (
	// ErrUnknownStream means that the peer does not have the stream. The peer never had the stream, has lost it and
	// begun another stream of the same name, or has ended it in order and forgotten it. Another carrier does not
	// help, so the caller should end the stream. No data is lost if the peer has ended the stream in order.
	ErrUnknownStream = errors.New("the peer does not have this stream")
	// ErrVersion means that the two sides have different versions of the protocol.
	ErrVersion = errors.New("the peer has another version")
	// ErrSuperseded means that a newer carrier has replaced this carrier.
	ErrSuperseded = errors.New("superseded by a newer carrier")
	// ErrProtocol means that the data from the carrier does not follow the protocol. The stream
	// is not affected.
	ErrProtocol = errors.New("not the protocol of a stream")
)

// errEnded ends a Carry after the stream has ended in order in both directions.
var errEnded = errors.New("stream ended")

// Refused is the error if one side has refused a carrier. The stream is not affected.
type Refused struct {
	// Reason is ErrUnknownStream, ErrVersion or ErrSuperseded. It is nil if this version of the protocol does
	// not know the reason.
	Reason error
	// Text is the explanation of the side that refused.
	Text string
	// ByPeer is true if the peer has refused the carrier, and not this side.
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

// reasons has the reasons of refusals, by their code in the protocol.
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
