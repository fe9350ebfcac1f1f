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

// envFlags has the flags whose values set variables. The values of the variables may be secret.
var envFlags = []string{"-e", "--e", "-env", "--env"}

// shownWords returns the arguments of a command line in the form that other users may see. The values of variables are
// hidden. The arguments after -- are the job's own command and stay unchanged.
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

// hideValue hides the value in NAME=VALUE.
func hideValue(variable string) string {
	name, _, set := strings.Cut(variable, "=")
	if !set {
		return variable
	}
	return name + "=" + job.Hidden
}

// wordsFile returns an open file without a name that has the arguments of a command line. A child process can inherit
// the file.
func wordsFile(words []string) (*os.File, error) {
	fd, err := unix.MemfdCreate("words", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "words")
	// No word contains a NUL byte.
	if _, err := file.WriteAt([]byte(strings.Join(words, "\x00")), 0); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Words returns the arguments with which the user started this process. args has the arguments of the command line of
// the process. Mostly, they are the same. On the command line of a detached controller, the values of environment
// variables from flags such as -e are replaced by ***, because they may be secret. So a detached controller reads its
// arguments from a file that Start has passed to it.
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
