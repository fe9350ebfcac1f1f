package curve

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// Value is a number in a line, with the name that the number has in the line.
type Value struct {
	Name  string // in lower case, with blanks between its words
	Value float64
}

// maxValues limits the values that are read from a line. maxWords limits the words of a name.
const (
	maxValues = 64
	maxWords  = 4
)

// Values returns the numbers of a line that follow a name, as in "train loss 2.43, val loss 2.51",
// "'eval_accuracy': 0.91" and "learning rate: 1.0E-04 | grad norm: 0.150". A line may begin with the name of
// data that are not training data, as in "Test set: Average loss: 0.02" and "valid | epoch 001 | loss 9.1".
// Values puts the name of the data before each name. The name of a value in MLPerf's log is its key.
func Values(line []byte) []Value {
	line = visible(line)
	if text, ok := bytes.CutPrefix(line, []byte(mllog)); ok {
		return mlValues(text)
	}
	if !bytes.ContainsAny(line, "0123456789nN") {
		return nil
	}
	var buf [longest]byte
	s := scanner{text: plain(buf[:0], line)}
	var all []Value
	var name []string
	heading, headed := "", false
	for i := 0; i < len(s.text) && len(all) < maxValues; {
		c := s.text[i]
		switch {
		case isLetter(c):
			end := i + 1
			for end < len(s.text) && inName(s.text, end) {
				end++
			}
			word := string(s.text[i:end])
			if begun := len(all) == 0 && len(name) == 0; begun && !headed && validation[word] {
				heading = word
			}
			headed = true
			if (word == "epoch" || word == "iter") && bytes.HasPrefix(s.text[end:], []byte("(val)")) {
				heading = "val"
			}
			if name = append(name, word); len(name) > maxWords {
				name = name[1:]
			}
			v, after, ok := s.measureOf(word, end)
			if ok && !counters[word] && (after >= len(s.text) || s.ends(after)) {
				full := strings.Join(name, " ")
				if heading != "" && !validation[first(name[0])] && name[0] != "train" {
					full = heading + " " + full
				}
				all, name, end = append(all, Value{full, v}), nil, after
			}
			i = end
		case c == ' ' || c == '_':
			i++
		default:
			name = nil
			i++
		}
	}
	return all
}

// inName reports whether a name continues with the byte at i. That is a letter, a digit, or a slash, dot or
// dash between two of these.
func inName(t []byte, i int) bool {
	if isLetter(t[i]) || isDigit(t[i]) {
		return true
	}
	return (t[i] == '/' || t[i] == '.' || t[i] == '-') && i+1 < len(t) && isLetter(t[i+1])
}

// ends reports whether a number may end at i.
func (s *scanner) ends(i int) bool {
	return s.boundary(i) || s.text[i] == '%' || s.text[i] == '/' || isLetter(s.text[i]) && !isDigit(s.text[i-1]) ||
		bytes.HasPrefix(s.text[i:], []byte(" "))
}

// Benchmark returns the name of the benchmark if line is the line of MLPerf's log that has this name. Otherwise
// ok is false.
func Benchmark(line []byte) (name string, ok bool) {
	text, ok := bytes.CutPrefix(visible(line), []byte(mllog))
	if !ok {
		return "", false
	}
	var entry struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	if json.Unmarshal(text, &entry) != nil || entry.Key != "submission_benchmark" {
		return "", false
	}
	return entry.Value, true
}

// mlValues reads the value of a line of MLPerf's log.
func mlValues(text []byte) []Value {
	var line struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	var other *json.UnmarshalTypeError
	if err := json.Unmarshal(notJSON.ReplaceAll(text, []byte(`: "$1"`)), &line); err != nil && !errors.As(err, &other) {
		return nil
	}
	v, err := strconv.ParseFloat(strings.Trim(string(line.Value), `"`), 64)
	if err != nil && !math.IsInf(v, 0) {
		return nil
	}
	switch line.Key {
	case "eval_accuracy", "eval_loss", "eval_error", "train_loss":
		return []Value{{line.Key, v}}
	}
	return nil
}
