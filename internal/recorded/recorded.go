// Package recorded reads error files of PyTorch. A rank that torch.distributed.elastic has started writes an
// uncaught exception to its error file. The path of this file is in TORCHELASTIC_ERROR_FILE.
package recorded

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// MaxBytes is the largest size of an error file, in bytes. A larger file does not count as an error
// file.
const MaxBytes = 1 << 20

// Exception is an exception that ended a rank.
type Exception struct {
	Lines []string  // the lines of its traceback or, if it has none, of its message
	Time  time.Time // when it was raised, in whole seconds; zero if that is not known
}

// file is an error file.
type file struct {
	// Message is the object message. Before PyTorch 1.9, it is a text.
	Message   json.RawMessage `json:"message"`
	Timestamp json.RawMessage `json:"timestamp"` // only in files whose Message is a text
}

type message struct {
	Message   string `json:"message"` // as in "ValueError: no such shape"
	ExtraInfo struct {
		Callstack string          `json:"py_callstack"`
		Timestamp json.RawMessage `json:"timestamp"` // seconds of Unix time, a text or a number
	} `json:"extraInfo"`
}

// Parse reads an error file. It returns false if data is not one, or if it holds no exception.
func Parse(data []byte) (Exception, bool) {
	var f file
	if len(data) > MaxBytes || json.Unmarshal(data, &f) != nil {
		return Exception{}, false
	}
	var m message
	stamp := f.Timestamp
	if json.Unmarshal(f.Message, &m.Message) != nil {
		if json.Unmarshal(f.Message, &m) != nil {
			return Exception{}, false
		}
		stamp = m.ExtraInfo.Timestamp
	}
	text := strings.TrimRight(m.ExtraInfo.Callstack, "\n")
	if !strings.HasPrefix(text, "Traceback ") {
		text = strings.TrimRight(m.Message, "\n")
	}
	if text == "" {
		return Exception{}, false
	}
	e := Exception{Lines: strings.Split(text, "\n")}
	if seconds, err := strconv.ParseInt(strings.Trim(string(stamp), `"`), 10, 64); err == nil && seconds > 0 {
		e.Time = time.Unix(seconds, 0)
	}
	return e, true
}
