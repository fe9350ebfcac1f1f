package resumable

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
)

// ID names a stream. Who knows it can carry the stream: it is a token.
type ID [16]byte

// NewID returns an ID that nobody can guess.
func NewID() ID {
	var id ID
	rand.Read(id[:]) // never fails
	return id
}

// ParseID reads what String wrote.
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

// hint is enough of the ID to tell streams apart in an error, and too little to
// carry one.
func (id ID) hint() string { return hex.EncodeToString(id[:4]) }
