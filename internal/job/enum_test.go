package job_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// constants returns the values of the typed string constants of the package, by the names of their types. It reads
// them from the source, so that a test cannot miss one.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	names, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name.Name(), ".go") || strings.HasSuffix(name.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, spec := range gen.Specs {
				value := spec.(*ast.ValueSpec)
				kind, ok := value.Type.(*ast.Ident)
				if !ok {
					continue
				}
				for _, expr := range value.Values {
					if lit, ok := expr.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						text, err := strconv.Unquote(lit.Value)
						if err != nil {
							t.Fatal(err)
						}
						found[kind.Name] = append(found[kind.Name], text)
					}
				}
			}
		}
	}
	return found
}

var slug = regexp.MustCompile(`^[a-z]+[0-9]*(-[a-z]+)*$`)

// TestEnumerations checks that the values of an enumeration are slugs, that they differ, and that they are the same in
// JSON.
func TestEnumerations(t *testing.T) {
	through := map[string]func(string) any{
		"Action":           enum[job.Action],
		"Category":         enum[job.Category],
		"Decision":         enum[job.Decision],
		"ContainerNetwork": enum[job.ContainerNetwork],
		"Ended":            enum[job.Ended],
		"EnvCompat":        enum[job.EnvCompat],
		"ErrorKind":        enum[job.ErrorKind],
		"ExitMode":         enum[job.ExitMode],
		"ExitStatus":       enum[job.ExitStatus],
		"Fault":            enum[job.Fault],
		"Kind":             enum[job.Kind],
		"GPUSign":          enum[job.GPUSign],
		"XIDBucket":        enum[job.XIDBucket],
		"GPUVisibility":    enum[job.GPUVisibility],
		"ImageProblem":     enum[job.ImageProblem],
		"Joined":           enum[job.Joined],
		"LauncherMode":     enum[job.LauncherMode],
		"OnSignal":         enum[job.OnSignal],
		"WatchMode":        enum[job.WatchMode],
		"BeforeStop":       enum[job.BeforeStop],
		"EarlyAction":      enum[job.EarlyAction],
		"Goal":             enum[job.Goal],
		"DivergeResume":    enum[job.DivergeResume],
		"Link":             enum[job.Link],
		"Locality":         enum[job.Locality],
		"Looks":            enum[job.Looks],
		"MPI":              enum[job.MPI],
		"OutputMode":       enum[job.OutputMode],
		"PreflightMode":    enum[job.PreflightMode],
		"ProcessState":     enum[job.ProcessState],
		"Reason":           enum[job.Reason],
		"Severity":         enum[job.Severity],
		"Source":           enum[job.Source],
		"State":            enum[job.State],
		"Stdin":            enum[job.Stdin],
		"StopReason":       enum[job.StopReason],
		"TrialMode":        enum[job.TrialMode],
		"TTY":              enum[job.TTY],
		"RankPhase":        enum[job.RankPhase],
		"StragglerReason":  enum[job.StragglerReason],
		"SaveState":        enum[job.SaveState],
		"FailureSource":    enum[job.FailureSource],
		"SpeedKind":        enum[job.SpeedKind],
		"StackTool":        enum[job.StackTool],
		"HangStage":        enum[job.HangStage],
		"HealthMode":       enum[job.HealthMode],
		"HealthSign":       enum[job.HealthSign],
		"LifeSign":         enum[job.LifeSign],
		"VersionKind":      enum[job.VersionKind],
	}
	all := constants(t)
	for kind := range all {
		if through[kind] == nil {
			t.Errorf("the enumeration %s is not tested", kind)
		}
	}
	for kind, read := range through {
		values := all[kind]
		if len(values) < 2 {
			t.Errorf("%s has the values %q, want several", kind, values)
		}
		seen := map[string]bool{}
		for _, value := range values {
			if value != "" && kind != "Link" && !slug.MatchString(value) { // a Link is written as in nvidia-smi
				t.Errorf("%s %q is no slug", kind, value)
			}
			if seen[value] {
				t.Errorf("%s %q stands twice", kind, value)
			}
			seen[value] = true
			data, err := json.Marshal(read(value))
			if want := strconv.Quote(value); err != nil || string(data) != want {
				t.Errorf("%s %q is %s in JSON (%v), want %s", kind, value, data, err, want)
			}
		}
	}
}

// enum decodes a value of an enumeration from JSON. It returns the value, or the error.
func enum[E ~string](text string) any {
	var e E
	if err := json.Unmarshal([]byte(strconv.Quote(text)), &e); err != nil {
		return err
	}
	return e
}

// TestListsAreComplete checks that functions such as Actions return every value of an enumeration.
func TestListsAreComplete(t *testing.T) {
	all := constants(t)
	for kind, list := range map[string][]string{
		"Action":        texts(job.Actions()),
		"Category":      texts(job.Categories()),
		"ExitMode":      texts(job.ExitModes()),
		"HealthMode":    texts(job.HealthModes()),
		"LauncherMode":  texts(job.LauncherModes()),
		"OnSignal":      texts(job.OnSignals()),
		"WatchMode":     texts(job.WatchModes()),
		"BeforeStop":    texts(job.BeforeStops()),
		"EarlyAction":   texts(job.EarlyActions()),
		"Goal":          texts(job.Goals()),
		"DivergeResume": texts(job.DivergeResumes()),
		"OutputMode":    texts(job.OutputModes()),
		"PreflightMode": texts(job.PreflightModes()),
		"SpeedKind":     texts(job.SpeedKinds()),
		"TrialMode":     texts(job.TrialModes()),
		"TTY":           texts(job.TTYs()),
	} {
		if !slices.Equal(list, all[kind]) {
			t.Errorf("%s: listed are %q, declared are %q", kind, list, all[kind])
		}
	}
}

func texts[E ~string](values []E) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

func TestStateFinal(t *testing.T) {
	live := []job.State{"", job.StatePreflight, job.StateWaiting, job.StateLaunching, job.StateRunning, job.StateStopping}
	for _, s := range live {
		if s.Final() {
			t.Errorf("%q is final, want it live", s)
		}
	}
	ended := 0
	for _, text := range constants(t)["State"] {
		if s := job.State(text); !slices.Contains(live, s) {
			ended++
			if !s.Final() {
				t.Errorf("%q is live, want it final", s)
			}
		}
	}
	if ended != 7 {
		t.Errorf("%d states are final, want 7", ended)
	}
}
