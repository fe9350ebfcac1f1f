package inventory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gangrun/gangrun/internal/safefile"
)

// MaxSize is the maximum size of a file that this package reads, in bytes. MaxYAML is the maximum size of a
// YAML inventory.
const (
	MaxSize = 16 << 20
	MaxYAML = 2 << 20
)

// ReadFile reads a regular file as os.ReadFile does, but reads at most MaxSize+1 bytes of it.
// It does not expand "~".
func ReadFile(path string) ([]byte, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

// commandLimit is the time limit for a command of a batch system.
const commandLimit = 10 * time.Second

// Output runs a command of a batch system and returns its output. It can be the argument run of
// FromEnvironment.
func Output(name string, args ...string) ([]byte, error) {
	ctx, stop := context.WithTimeout(context.Background(), commandLimit)
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s has not ended within %v", name, commandLimit)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return nil, fmt.Errorf("%s", bytes.TrimSpace(exit.Stderr))
	}
	return out, err
}

// reason returns the reason why a file could not be read, without its path.
func reason(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	if k := (*safefile.KindError)(nil); errors.As(err, &k) {
		return fmt.Errorf("it is %s, not a regular file", safefile.Kind(k.Mode))
	}
	return err
}

// clean returns text without a byte order mark. The error says why the text cannot be a list of hosts.
func clean(source string, text []byte, most int) ([]byte, error) {
	if len(text) > most {
		return nil, one(source, 0, faultf(fmt.Sprintf("a file of this kind has at most %d MiB; is it the right one?", most>>20), "is too large for a list of hosts"))
	}
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil, one(source, 1, faultf("save it as UTF-8", "is text in UTF-16, not in UTF-8"))
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	line := 1
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return nil, one(source, line, faultf("save the file as UTF-8", "the byte %#02x here is no UTF-8", text[i]))
		case r == '\r' && (i+1 == len(text) || text[i+1] != '\n'),
			r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r >= 0xfffe && r <= 0xffff:
			return nil, one(source, line, faultf("remove it; is this a text file?", "the control character %U cannot stand here", r))
		case r == '\n':
			line++
		}
		i += size
	}
	return text, nil
}

// lines calls each for every line that has words, with its number and its words. It ignores everything after a
// #.
func lines(text []byte, each func(line int, words []string)) {
	line := 0
	for l := range strings.Lines(string(text)) {
		line++
		l, _, _ = strings.Cut(l, "#")
		if words := strings.Fields(l); len(words) > 0 {
			each(line, words)
		}
	}
}
