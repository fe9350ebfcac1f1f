package jobfile

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/yamldoc"
)

// FuzzParse checks that a file is either refused, with an error that has its place in the file, or accepted. Marshal
// must be able to write accepted values, and Parse to read them again. Finish must accept them, or its errors must
// have their places.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", example, mistakes, "\ufeff---\nranks: 2\n", "command: [a, !!binary AP8=]\n", "env: &e {A: *e}\n",
		"env: &e {A: 1}\ntrial: {env: *e, <<: *e}\n", "trial: off\nstdin: 3\n", "a: b: c", "\t", "command: |\n  a \\\n  b\n", "? [a]\n: b", "- 1\n---\n- 2",
		"policy: {unknown: again}\nsecret: [A]\nenv: {A: '***'}", "name: \"\\u2028\\xff\"", "[[[[{{{{", "%YAML 1.1\n---\n", "%TAG ! x\n---\n!a b", "&a *a", "name: &a x\n? *a\n: y",
		"patience: {rack: 1h, island: strict}", "patience: island=1m,host=2m", "patience: {host: &a 1m, island: *a, any: 3}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("job.yaml", data)
		if err != nil {
			located(t, err, len(yamldoc.Lines(data)))
			return
		}
		o := NewOptions(environment(nil))
		o.Apply(file)
		if len(o.spec.Command) == 0 {
			if err := o.SetCommand([]string{"a"}); err != nil {
				t.Fatal(err)
			}
		}
		spec, err := o.Finish("/here")
		if err != nil {
			located(t, err, len(yamldoc.Lines(data)))
			return
		}
		out, err := Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("job.yaml", out)
		if err != nil {
			if len(out) > MaxSize {
				return
			}
			t.Fatalf("%v in\n%s", err, out)
		}
		got := job.Default()
		again.Apply(&got)
		if want := spec.Redacted(); !reflect.DeepEqual(plain(got), plain(want)) {
			t.Errorf("got  %+v\nwant %+v\nfrom\n%s", got, want, out)
		}
	})
}

// located checks that every error says what is wrong and where. lines is the number of lines of the file.
func located(t *testing.T, err error, lines int) {
	t.Helper()
	var errs Errors
	if !errors.As(err, &errs) || len(errs) == 0 {
		t.Fatalf("error %#v, want Errors", err)
	}
	for _, e := range errs {
		if e.Text == "" || e.File != "job.yaml" || e.Line < 1 || e.Line > lines || e.Column < 0 {
			t.Errorf("error %q has no place in %d lines", e, lines)
		}
		if strings.Contains(e.Error(), "\n") {
			t.Errorf("error %q is more than one line", e)
		}
	}
}

// TestHostileFiles checks that no file of the largest size takes much more memory than its parse, or an endless time.
func TestHostileFiles(t *testing.T) {
	fill := func(head, each string) string { return head + strings.Repeat(each, (MaxSize-len(head))/len(each)) }
	for name, file := range map[string]string{
		"deep lists":       fill("", "["),
		"deep mappings":    fill("", "{a: "),
		"deep keys":        fill("", "? "),
		"deep blocks":      fill("", "- "),
		"many items":       fill("inputs: [", "a,"),
		"many errors":      fill("inputs: [", "[],"),
		"many keys":        fill("", "a: 1\n"),
		"many comments":    fill("ranks: 1\n", "#\n"),
		"a long key":       fill("", "a") + ": 1",
		"a long line":      fill("command: ", "a "),
		"many quotes":      fill("command: ", `''`),
		"many documents":   fill("", "---\n"),
		"many anchors":     fill("inputs: [", "&a b,"),
		"many aliases":     fill("name: &a xxxxxxxxxxxxxxxx\ninputs: [", "*a,"),
		"many directives":  fill("", "%A b\n"),
		"only blank lines": fill("", "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse("job.yaml", []byte(file))
			runtime.ReadMemStats(&after)
			var errs Errors
			if err != nil && !errors.As(err, &errs) {
				t.Fatalf("error %#v, want Errors", err)
			}
			if len(errs) > maxErrors+1 {
				t.Errorf("%d errors are told", len(errs))
			}
			if total := after.TotalAlloc - before.TotalAlloc; total > 512<<20 {
				t.Errorf("%d MiB were allocated in all", total>>20)
			} else {
				t.Logf("%d MiB", total>>20)
			}
			if text := ""; err != nil {
				if text = err.Error(); len(text) > 1<<16 {
					t.Errorf("the error is %d bytes long", len(text))
				}
			}
		})
	}
}
