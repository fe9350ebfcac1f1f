package probe

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode"

	"github.com/gangrun/gangrun/topology/nvml"
)

// Limits on the output of "gangrun-nvml events".
const (
	maxLine = 4 << 10 // bytes of a line
	maxXID  = 1 << 16 // NVIDIA's catalogue ends below 200
	maxPID  = 1 << 22 // the limit of the kernel
	maxName = 96      // bytes of a UUID; the UUID of a MIG instance has 40
	maxText = 256     // bytes of an event's text

	maxAncestors = 64 // of a process
)

// readEvents reads events, one on each line, until r ends. The end of r is not an error. It ignores
// a last line that is cut off, and events of unknown kinds, which a newer gangrun-nvml may have.
func readEvents(r io.Reader, each func(nvml.Event)) error {
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("a line of more than %d bytes: %s", maxLine, quoted(string(line)))
		case errors.Is(err, io.EOF) || errors.Is(err, fs.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		e, known, err := decodeEvent(line)
		if err != nil {
			return fmt.Errorf("%w: %s", err, quoted(string(line)))
		}
		if known {
			each(e)
		}
	}
}

// decodeEvent reads a line. known is false if the kind of the event is not known.
func decodeEvent(line []byte) (e nvml.Event, known bool, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return nvml.Event{}, false, err
	}
	switch e.Kind {
	case nvml.EventXID, nvml.EventECCSingle, nvml.EventECCDouble, nvml.EventAlive, nvml.EventProcess, nvml.EventLooked, nvml.EventSample, nvml.EventLost:
	case "":
		return nvml.Event{}, false, errors.New("an event without a kind")
	default:
		return nvml.Event{}, false, nil
	}
	if e.XID < 0 || e.XID >= maxXID || e.XID > 0 && e.Kind != nvml.EventXID {
		return nvml.Event{}, false, fmt.Errorf("xid is %d", e.XID)
	}
	if (e.PID > 0) != (e.Kind == nvml.EventProcess) || e.PID < 0 || e.PID > maxPID {
		return nvml.Event{}, false, fmt.Errorf("pid is %d", e.PID)
	}
	if len(e.UUID) > maxName || shown(e.UUID) != e.UUID {
		return nvml.Event{}, false, errors.New("uuid is no UUID")
	}
	if e.PCI != "" {
		if e.PCI, err = nvml.BusID(e.PCI); err != nil {
			return nvml.Event{}, false, err
		}
	}
	if (e.Sample != nil) != (e.Kind == nvml.EventSample) {
		return nvml.Event{}, false, errors.New("a sample without numbers, or numbers of no sample")
	}
	if e.Origin != nil {
		if e.Kind != nvml.EventProcess || len(e.Origin.Ancestors) > maxAncestors {
			return nvml.Event{}, false, errors.New("the origin of no process")
		}
		e.Origin.Name = shown(e.Origin.Name)
	}
	if e.Sample != nil {
		showSample(e.Sample)
	}
	e.Text = shown(e.Text)
	if len(e.Text) > maxText {
		e.Text = strings.ToValidUTF8(e.Text[:maxText], "")
	}
	return e, true, nil
}

// showSample makes the texts of a sample fit to be shown.
func showSample(s *nvml.Sample) {
	s.Recovery = shown(s.Recovery)
	for i, reason := range s.Throttle {
		s.Throttle[i] = shown(reason)
	}
}

// shown returns text without characters that a terminal could take for a command.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// warningPrefix is the beginning of the lines in which gangrun-nvml says what it cannot watch.
const warningPrefix = "gangrun-nvml: warning: "

// readWarnings reads r to its end and calls warn with each warning. It returns the end of the last
// line that is not a warning.
func readWarnings(r io.Reader, warn func(text string)) (last []byte) {
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := lines.ReadSlice('\n') // or a part of a line
		if text, ok := bytes.CutPrefix(line, []byte(warningPrefix)); ok {
			warn(shown(strings.TrimSpace(string(text))))
		} else if line = bytes.TrimSpace(line); len(line) > 0 {
			last = bytes.Clone(line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return last
		}
	}
}
