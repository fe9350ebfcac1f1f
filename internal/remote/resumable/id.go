package resumable

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
)

// ID names a stream. It must be kept secret: anybody who knows it can carry the stream.
type ID [16]byte

// NewID returns a random ID.
func NewID() ID {
	var id ID
	rand.Read(id[:]) // never fails
	return id
}

// ParseID parses the result of String.
func ParseID(s string) (ID, error) {
	var id ID
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return ID{}, fmt.Errorf("stream ID of %d characters is not %d hexadecimal digits", len(s), 2*len(id))
	}
	return ID(b), nil
}

// String returns the whole ID, as hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// hint returns the beginning of the ID. That is enough to tell streams apart in an error, but too little to carry a
// stream.
func (id ID) hint() string { return hex.EncodeToString(id[:4]) }
