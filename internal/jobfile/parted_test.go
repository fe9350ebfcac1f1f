package jobfile

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
)

func TestPatience(t *testing.T) {
	for _, c := range []struct {
		yaml string
		want job.Patience
	}{
		{"patience: 2m", "2m"}, {"patience: strict", "strict"}, {"patience: 0s", "0s"},
		{"patience: island=10m,host=strict", "island=10m,host=strict"},
		{"patience: {island: 10m, host: 2m}", "island=10m,host=2m"},
		{"patience:\n  rack: strict\n  island: 90s", "rack=strict,island=90s"},
		{"a: &wait 5m\npatience: {host: *wait}", "host=5m"},
		{"patience: {}", job.DefaultPatience},
	} {
		text := strings.Replace(c.yaml, "a: &wait 5m", "grace: &wait 5m", 1)
		f, err := Parse("job.yaml", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		spec := job.Default()
		f.Apply(&spec)
		if spec.Patience != c.want {
			t.Errorf("%q is %q, want %q", text, spec.Patience, c.want)
		}
		if err := jobcheck.Patience(spec.Patience); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		spec.Command = []string{"x"}
		data, err := Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(c.want), "=") != strings.Contains(string(data), "patience:\n") || strings.Contains(string(data), "patience: island") {
			t.Errorf("%q is written as\n%s", c.want, data)
		}
		again, err := Parse("job.yaml", data)
		if err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
		got := job.Default()
		again.Apply(&got)
		if got.Patience != spec.Patience {
			t.Errorf("%q becomes %q when it is written and read", spec.Patience, got.Patience)
		}
	}
}

func TestPatienceErrors(t *testing.T) {
	const hint = "write it as in patience: 2m, patience: strict or patience: {island: 10m, host: 2m}"
	for _, c := range []struct{ yaml, want, hint string }{
		{"patience:", `job.yaml:1:10: patience wants a duration with a unit, as in 2m, strict, or a mapping of levels to them, not nothing`, hint},
		{"patience: [2m]", `job.yaml:1:11: patience wants a duration with a unit, as in 2m, strict, or a mapping of levels to them, not a list`, hint},
		{"patience: 10", `job.yaml:1:11: patience "10" has no unit, write 10s`, ""},
		{"patience: strickt", `job.yaml:1:11: patience wants a duration with a unit, as in 2m, or strict, not "strickt", did you mean "strict"?`, ""},
		{"patience: -1m", `job.yaml:1:11: patience wants a duration with a unit, as in 2m, or strict, not "-1m"`, ""},
		{"patience: islnd=1m", `job.yaml:1:11: patience names "islnd", which is no level to wait for, did you mean "island"?`, ""},
		{"patience: island=1m,island=2m", `job.yaml:1:11: patience names island twice`, "keep one of the two"},
		{"patience: island=1m,2m", `job.yaml:1:11: patience wants LEVEL=TIME between commas, not "2m"`, ""},
		{"patience: host=2", `job.yaml:1:11: patience of host "2" has no unit, write 2s`, ""},
		{"patience:\n  islan: 10m\n  host: 2m", `job.yaml:2:3: patience names "islan", which is no level to wait for, did you mean "island"?`, ""},
		{"patience:\n  any: 10m", `job.yaml:2:3: patience names "any", which is no level to wait for`, "the levels to wait for are: island, host, rack"},
		{"patience:\n  island: 10m\n  host: 2", `job.yaml:3:9: patience.host "2" has no unit, write 2s`, ""},
		{"patience:\n  island: forever", `job.yaml:2:11: patience.island wants a duration with a unit, as in 2m, or strict, not "forever"`, ""},
		{"patience:\n  island:", `job.yaml:2:10: patience.island wants a duration with a unit, as in 2m, or strict, not nothing`, hint},
		{"patience: {island: [1m]}", `job.yaml:1:20: patience.island wants a duration with a unit, as in 2m, or strict, not a list`, ""},
		{"patience:\n  island: 1m\n  island: 2m", `job.yaml:3:3: the key "island" stands here and on line 2`, "keep one of the two"},
	} {
		_, err := Parse("job.yaml", []byte(c.yaml))
		errs, ok := err.(Errors)
		if !ok || len(errs) != 1 {
			t.Errorf("%q: %v, want one error", c.yaml, err)
			continue
		}
		if errs[0].Error() != c.want || errs[0].Hint() != c.hint {
			t.Errorf("%q: %q, hint %q\nwant %q, hint %q", c.yaml, errs[0], errs[0].Hint(), c.want, c.hint)
		}
	}
	o := NewOptions(func(string) (string, bool) { return "", false })
	if err := o.Set("patience", "hst=1m"); err == nil || err.Error() != `--patience: patience names "hst", which is no level to wait for, did you mean "host"?` {
		t.Errorf("the flag: %v", err)
	}
	if err := o.Set("patience", "{island: 1m}"); err == nil {
		t.Error("the flag takes YAML")
	}
	if err := o.Set("patience", "island=strict,rack=1h"); err != nil {
		t.Error(err)
	}
}

func TestEarlyStop(t *testing.T) {
	for text, want := range map[string]job.EarlyStop{
		"early-stop: off":                                     "off",
		"early-stop: stop":                                    "stop",
		"early-stop: {plateau: stop, flat: off}":              "plateau=stop,flat=off",
		"early-stop: plateau=stop,flat=off":                   "plateau=stop,flat=off",
		"early-stop: {}":                                      job.DefaultEarlyStop,
		"early-stop: &a {reached: stop}\ncommand: [*b, &b x]": "",
	} {
		f, err := Parse("job.yaml", []byte(text+"\n"))
		if want == "" {
			if err == nil {
				t.Errorf("%q is no job file", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		spec := job.Default()
		f.Apply(&spec)
		if spec.EarlyStop != want || jobcheck.EarlyStop(spec.EarlyStop) != nil {
			t.Errorf("%q is %q, want %q", text, spec.EarlyStop, want)
		}
	}
	for text, want := range map[string]string{
		"early-stop: {platau: stop}":  `early-stop names "platau", which is no verdict, did you mean "plateau"?`,
		"early-stop: {plateau: halt}": `early-stop.plateau wants off, advise or stop, not "halt"`,
		"early-stop: halt":            `early-stop wants off, advise or stop, not "halt"`,
		"early-stop: [stop]":          "early-stop wants off, advise, stop, or a mapping of verdicts to them, not a list",
		"curve: {target: low}":        `curve.target wants a number, not "low"`,
		"curve: {decay-end: -2}":      "curve.total is 0 and curve.decay-end -2, but must be 0 or more (-1 if decay-end is not known)",
	} {
		if _, err := Parse("job.yaml", []byte(text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
