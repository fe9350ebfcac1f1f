package main

import "strings"

// repeated is the value of a flag that may be given several times. It keeps the bytes that the user typed.
// cli.StringSlice does not: it passes the values through JSON, which keeps only UTF-8.
type repeated []string

// already is the value that the flag parser gives to the other names of a flag, which all have the same value. already
// is a NUL byte, because no word of a command line can contain a NUL byte.
const already = "\x00"

// Set adds a value.
func (t *repeated) Set(text string) error {
	if text != already {
		*t = append(*t, text)
	}
	return nil
}

// String implements cli.Generic.
func (t *repeated) String() string { return strings.Join(*t, " ") }

// Serialize implements cli.Serializer.
func (t *repeated) Serialize() string { return already }
