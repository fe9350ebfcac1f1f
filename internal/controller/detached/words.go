package detached

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// envFlags are the flags whose values set variables, which may be secret.
var envFlags = []string{"-e", "--e", "-env", "--env"}

// shownWords returns a command line as other users may see it: with the values of
// variables hidden. What follows -- is the job's own command and stays.
func shownWords(words []string) []string {
	shown := make([]string, len(words))
	value := false // the word is the value of the flag before it
	for i, word := range words {
		shown[i] = word
		flag, given, with := strings.Cut(word, "=")
		switch {
		case value:
			shown[i], value = hideValue(word), false
		case word == "--":
			return append(shown[:i], words[i:]...)
		case with && isEnvFlag(flag):
			shown[i] = flag + "=" + hideValue(given)
		default:
			value = isEnvFlag(word)
		}
	}
	return shown
}

func isEnvFlag(word string) bool { return slices.Contains(envFlags, word) }

// hideValue hides the value of NAME=VALUE.
func hideValue(variable string) string {
	name, _, set := strings.Cut(variable, "=")
	if !set {
		return variable
	}
	return name + "=" + job.Hidden
}

// wordsFile returns an open file without a name that holds a command line, for a process
// that is to inherit it.
func wordsFile(words []string) (*os.File, error) {
	fd, err := unix.MemfdCreate("words", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "words")
	// No word has a NUL byte.
	if _, err := file.WriteAt([]byte(strings.Join(words, "\x00")), 0); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Words returns the command line that this process was started for. That of a detached
// controller comes from the process that has started it, because the values of variables
// are hidden in args.
func Words(args []string) ([]string, error) {
	if os.Getenv(envName) == "" {
		return args, nil
	}
	file := os.NewFile(wordsFD, "words")
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("%s is set, but its command line cannot be read: %w", envName, err)
	}
	return strings.Split(string(text), "\x00"), nil
}
