package metrics

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// maxLine is the length of the longest line that is read, in bytes. Longer lines are ignored.
const maxLine = 1 << 20

// lines splits a stream into lines.
type lines struct {
	rest []byte
	long bool // the present line is too long
	each func(line []byte, emit func(Point)) error
}

func (l *lines) add(piece []byte, emit func(Point)) error {
	for {
		line, rest, whole := bytes.Cut(piece, []byte("\n"))
		if !whole {
			if l.long = l.long || len(l.rest)+len(piece) > maxLine; !l.long {
				l.rest = append(l.rest, piece...)
			}
			return nil
		}
		piece = rest
		if len(l.rest) > 0 {
			l.rest = append(l.rest, line...)
			line = l.rest
		}
		long := l.long || len(line) > maxLine
		l.long = false
		var err error
		if !long {
			err = l.each(bytes.TrimSuffix(line, []byte("\r")), emit)
		}
		l.rest = l.rest[:0]
		if err != nil {
			return err
		}
	}
}

// table reads CSV with commas, tabs or semicolons. The first line has the names of the columns. Cells may be
// empty.
type table struct {
	names []string
	sep   rune
	row   int64
}

func (t *table) line(line []byte, emit func(Point)) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	if t.names == nil {
		t.names, t.sep = header(line)
		return nil
	}
	cells, ok := cut(line, t.sep)
	if !ok || len(cells) != len(t.names) {
		return nil
	}
	of := map[string]float64{}
	for i, text := range cells {
		if v, ok := cell(text); ok || t.sep != ',' && decimal(text, &v) {
			of[t.names[i]] = v
		}
	}
	if len(of) == 0 { // the header of another run that was appended
		if names, sep := header(line); names != nil {
			t.names, t.sep = names, sep
		}
		return nil
	}
	t.row++
	keyed(of, t.row, emit)
	return nil
}

// cell reads a number in a table. ok is false for words such as "None".
func cell(text string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange) && math.IsInf(v, 0)
}

// decimal reads a number with a decimal comma in a table whose cells are not separated by commas.
func decimal(text string, v *float64) (ok bool) {
	*v, ok = cell(strings.Replace(text, ",", ".", 1))
	return ok
}

func cut(line []byte, sep rune) ([]string, bool) {
	r := csv.NewReader(bytes.NewReader(line))
	r.Comma, r.LazyQuotes, r.TrimLeadingSpace = sep, true, sep != '\t'
	cells, err := r.Read()
	return cells, err == nil
}

// header returns the names of the columns if the line is the header of a table, and otherwise nil. In a
// header, all cells are words, no two of them are equal, and at least one is the name of a signal.
func header(line []byte) (names []string, sep rune) {
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	for _, sep := range []rune{',', '\t', ';'} {
		cells, ok := cut(line, sep)
		if !ok || len(cells) < 2 {
			continue
		}
		known, seen := false, map[string]bool{}
		for i, name := range cells {
			name = strings.TrimSpace(name)
			if _, number := cell(name); number || len(name) > 100 || strings.ContainsAny(name, ":={}") || name != "" && seen[name] {
				return nil, 0
			}
			m, ok := MeaningOf(name)
			known = known || ok || m.Training
			seen[name] = true
			cells[i] = canonical(name)
		}
		if known {
			return cells, sep
		}
	}
	return nil, 0
}

// canonical returns the name of a counter or a clock in lower case and with underscores. It returns other
// names unchanged.
func canonical(name string) string {
	low := strings.ReplaceAll(strings.ToLower(name), " ", "_")
	if clocks[low] {
		return low
	}
	for _, counter := range counters {
		if low == counter {
			return low
		}
	}
	return name
}

// objects reads lines that are JSON objects.
type objects struct{ row int64 }

func (o *objects) line(line []byte, emit func(Point)) error {
	of, ok := object(line)
	if ok && len(of) > 0 {
		o.row++
		keyed(of, o.row, emit)
	}
	return nil
}

// object returns the numbers of a JSON object by their names. The name of a number in a nested object has the
// names of the objects before it, with slashes. object accepts NaN and Infinity, which Python writes.
func object(line []byte) (of map[string]float64, ok bool) {
	var in map[string]any
	text := bytes.TrimSpace(line)
	if len(text) == 0 || text[0] != '{' {
		return nil, false
	}
	if json.Unmarshal(text, &in) != nil && json.Unmarshal(standard(text), &in) != nil {
		return nil, false
	}
	of = map[string]float64{}
	flatten(in, "", 0, of)
	return of, true
}

func flatten(in map[string]any, under string, depth int, of map[string]float64) {
	for name, v := range in {
		name = under + canonical(name)
		switch v := v.(type) {
		case float64:
			of[name] = v
		case string:
			if n, ok := jsonNumber([]byte(v)); ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
				of[name] = n
			}
		case map[string]any:
			if depth < 4 {
				flatten(v, name+"/", depth+1, of)
			}
		}
	}
}

// standard puts numbers that JSON does not have into quotes. It does not change strings.
func standard(text []byte) []byte {
	out := make([]byte, 0, len(text)+16)
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
		case c == '"':
			quoted = !quoted
		case !quoted:
			found := false
			for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
				if bytes.HasPrefix(text[i:], []byte(word)) {
					out = append(append(append(out, '"'), word...), '"')
					i += len(word) - 1
					found = true
					break
				}
			}
			if found {
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}

// isState reports whether a file is a trainer_state.json, which the Trainer of Hugging Face writes.
func isState(text []byte) bool { return bytes.Contains(text, []byte(`"log_history"`)) }

// state reads a whole trainer_state.json. It returns the number of planned steps, or 0 if the file does not
// have it.
func state(text []byte, emit func(Point)) (total int64, err error) {
	var in struct {
		MaxSteps   int64             `json:"max_steps"`
		LogHistory []json.RawMessage `json:"log_history"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		if err := json.Unmarshal(standard(text), &in); err != nil {
			return 0, err
		}
	}
	for i, entry := range in.LogHistory {
		if of, ok := object(entry); ok && !summary(of) {
			keyed(of, int64(i), emit)
		}
	}
	return max(0, in.MaxSteps), nil
}

// summary reports whether an entry is about the whole training. The last entry of a log is.
func summary(of map[string]float64) bool {
	_, ok := of["train_runtime"]
	return ok
}
