// Package shell quotes words for shells.
package shell

import "strings"

// plain holds the characters that no shell changes.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,="

// Quote returns s as one word of a POSIX shell, csh or fish. It returns a word that needs no
// quotes unchanged.
func Quote(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
