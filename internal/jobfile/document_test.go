package jobfile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestDocumentIsCommitted compares docs/job-file.md with Document. With UPDATE=1, it writes the page.
func TestDocumentIsCommitted(t *testing.T) {
	var want bytes.Buffer
	if err := Document(&want); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "docs", "job-file.md")
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("docs/job-file.md is not what the table of fields says; run make docs")
	}
}

// TestExample checks that the example of the documentation is a valid job file and that it shows every key.
func TestExample(t *testing.T) {
	f, err := Parse("train.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range Fields() {
		shown := slices.ContainsFunc(f.settings, func(s setting) bool { return s.field.Name == field.Name })
		// A key that cannot be used together with another key is in a comment.
		shown = shown || strings.Contains(example, "\n#"+field.Name+": ")
		if field.Key && field.Kind != Group && !shown {
			t.Errorf("the example does not show %q", field.Name)
		}
	}
	o := NewOptions(environment(nil))
	o.Apply(f)
	spec, err := o.Finish("/home/me")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"python", "train.py", "--epochs", "20", "--out", "{{.CheckpointDir}}"}; !slices.Equal(spec.Command, want) {
		t.Errorf("command %q, want %q", spec.Command, want)
	}
	if spec.Workdir != "/home/me" || spec.CheckpointDir != "/home/me/checkpoints" || spec.Env["MODE"] != "yes" || spec.Env["LEARNING_RATE"] != "1e-3" ||
		spec.Policy[job.CUDAFailure] != job.RetryNever {
		t.Errorf("unexpected spec %+v", spec)
	}
}

func TestDocumentShowsEveryFieldAndError(t *testing.T) {
	var doc bytes.Buffer
	if err := Document(&doc); err != nil {
		t.Fatal(err)
	}
	for _, f := range Fields() {
		if f.Key && !strings.Contains(doc.String(), "| `"+f.Name+"` |") {
			t.Errorf("no key %q in the table", f.Name)
		}
		if f.Flag && !strings.Contains(doc.String(), "`--"+f.Flagged()+"` |") {
			t.Errorf("no flag %q in the table", f.Name)
		}
	}
	if strings.Contains(doc.String(), "{{example}}") || strings.Contains(doc.String(), "´") {
		t.Error("a placeholder was left in the document")
	}
}

// environment returns a function that looks up variables in m.
func environment(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := m[name]
		return v, ok
	}
}
