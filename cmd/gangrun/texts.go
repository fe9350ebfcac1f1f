package main

import "strings"

// texts is the value of a flag that may be given several times. It keeps the bytes
// that were typed: cli.StringSlice passes them through JSON, which keeps UTF-8 only.
type texts []string

// already is what the flag parser hands to the other names of a flag, which share
// its value. No word of a command line holds a NUL byte.
const already = "\x00"

// Set adds a value.
func (t *texts) Set(text string) error {
	if text != already {
		*t = append(*t, text)
	}
	return nil
}

// String implements cli.Generic.
func (t *texts) String() string { return strings.Join(*t, " ") }

// Serialize implements cli.Serializer.
func (t *texts) Serialize() string { return already }
