package main_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// runDir sets a variable to the directory of the run whose ID contains a text. Without a text, every run matches.
// Exactly one run must match:
//
//	rundir RUN digits
func runDir(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: rundir VARIABLE [TEXT]")
	}
	text := strings.Join(args[1:], "")
	found, err := filepath.Glob(filepath.Join(ts.Getenv("GANGRUN_HOME"), "runs", "*"+text+"*"))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%d runs: %q", len(found), found)
	}
	ts.Setenv(args[0], found[0])
}

// checkJSON compares a value in a JSON file with a text, or checks that the value exists:
//
//	json stdout .attempts.0.cause.category killed
//	json stdout .attempts.@            2
//	json stdout .attempts.-1.exits.*.code '[0,0]'
//	json stdout .run                   ~ '^2.*-digits-'
//	json stdout .run                   > RUN
//	! json stdout .attempts.2
//
// A path consists of names and indices. In a list, -1 is the last element, * stands for all elements, and @ is the
// number of elements. Values other than strings are compared in their compact JSON form. The argument after ~ is a
// regular expression. The argument after > is the name of a variable that is set to the value.
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 4 {
		ts.Fatalf("usage: json FILE PATH [[~|>] VALUE]")
	}
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("%s is no JSON: %v", args[0], err)
	}
	if d.More() {
		ts.Fatalf("%s holds more than one JSON value", args[0])
	}
	v, err := walk(v, strings.Split(strings.TrimPrefix(args[1], "."), "."))
	if err != nil {
		if !neg {
			ts.Fatalf("%s%s: %v", args[0], args[1], err)
		}
		return
	}
	got, ok := v.(string)
	if !ok {
		data, err := json.Marshal(v)
		ts.Check(err)
		got = string(data)
	}
	same := true
	switch {
	case len(args) == 3:
		same = got == args[2]
	case len(args) == 4 && args[2] == "~":
		re, err := regexp.Compile(args[3])
		ts.Check(err)
		same = re.MatchString(got)
	case len(args) == 4 && args[2] == ">" && !neg:
		ts.Setenv(args[3], got)
	case len(args) == 4:
		ts.Fatalf("unknown operator %q", args[2])
	}
	if same == neg {
		ts.Fatalf("%s%s is %s", args[0], args[1], got)
	}
}

// walk follows a path into a JSON value.
func walk(v any, path []string) (any, error) {
	if len(path) == 0 || path[0] == "" {
		return v, nil
	}
	name, rest := path[0], path[1:]
	switch v := v.(type) {
	case map[string]any:
		if name == "@" {
			return len(v), nil
		}
		next, ok := v[name]
		if !ok {
			return nil, fmt.Errorf("no %q", name)
		}
		return walk(next, rest)
	case []any:
		switch name {
		case "@":
			return len(v), nil
		case "*":
			all := []any{}
			for _, element := range v {
				one, err := walk(element, rest)
				if err != nil {
					return nil, err
				}
				all = append(all, one)
			}
			return all, nil
		}
		i, err := strconv.Atoi(name)
		if i < 0 {
			i += len(v)
		}
		if err != nil || i < 0 || i >= len(v) {
			return nil, fmt.Errorf("no element %q among %d", name, len(v))
		}
		return walk(v[i], rest)
	}
	return nil, fmt.Errorf("no %q in %v", name, v)
}

// checkJournal checks that the journal of an ended run is complete. Each line must be a JSON object with a time, the
// first event must be "created" and the last one "ended". Further arguments are kinds of events that the journal must
// have, in this order:
//
//	journal $RUN/journal.jsonl attempt started exit
func checkJournal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: journal FILE [KIND...]")
	}
	var kinds []string
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var e struct {
			Time *time.Time
			Kind string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Time == nil || !strings.HasSuffix(line, "\n") {
			ts.Fatalf("%s: line %d is no event (%v): %q", args[0], len(kinds)+1, err, line)
		}
		kinds = append(kinds, e.Kind)
	}
	if len(kinds) == 0 || kinds[0] != "created" || kinds[len(kinds)-1] != "ended" {
		ts.Fatalf("%s holds %q, which does not go from created to ended", args[0], kinds)
	}
	rest := kinds
	for _, want := range args[1:] {
		i := slices.Index(rest, want)
		if i < 0 {
			ts.Fatalf("%s holds %q, and %q is not where it should be", args[0], kinds, want)
		}
		rest = rest[i+1:]
	}
}
