package template_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/template"
)

// resumed and begun have the values for rank 3 in a gang that resumes, and in a gang that does not.
var (
	resumed = template.Fields{Rank: 3, LocalRank: 1, Host: "h2", CheckpointDir: "/ckpt", ResumeFrom: "/ckpt/step 20"}
	begun   = template.Fields{Rank: 0, LocalRank: 0, Host: "h1"}
)

func TestExpand(t *testing.T) {
	for _, c := range []struct {
		name           string
		command        []string
		resumed, begun []string
	}{
		{"fields", []string{"{{.Rank}}/{{.LocalRank}}", "{{.Host}}", "at:{{.CheckpointDir}}", "{{ .Rank }}{{\t.Rank}}"},
			[]string{"3/1", "h2", "at:/ckpt", "33"}, []string{"0/0", "h1", "at:", "00"}},
		{"a field that is empty", []string{"p", "{{.ResumeFrom}}", "--from={{.ResumeFrom}}"},
			[]string{"p", "/ckpt/step 20", "--from=/ckpt/step 20"}, []string{"p", "", "--from="}},
		{"a condition in one argument", []string{"p", "{{if .ResumeFrom}}--resume={{.ResumeFrom}}{{end}}", "last"},
			[]string{"p", "--resume=/ckpt/step 20", "last"}, []string{"p", "last"}},
		{"two arguments that vanish", []string{"p", "{{if .ResumeFrom}}--resume{{end}}", "{{if .ResumeFrom}}{{.ResumeFrom}}{{end}}"},
			[]string{"p", "--resume", "/ckpt/step 20"}, []string{"p"}},
		{"a condition over several arguments", []string{"p", "{{if .ResumeFrom}}--resume", "", "{{.ResumeFrom}}{{end}}", ""},
			[]string{"p", "--resume", "", "/ckpt/step 20", ""}, []string{"p", ""}},
		{"a condition in arguments of its own", []string{"p", "{{if .ResumeFrom}}", "a", "{{else}}", "b", "{{end}}", "c"},
			[]string{"p", "a", "c"}, []string{"p", "b", "c"}},
		{"else", []string{"{{if .ResumeFrom}}resume.sh{{else}}start.sh{{end}}"}, []string{"resume.sh"}, []string{"start.sh"}},
		{"numbers", []string{"p", "{{if .Rank}}quiet{{else}}loud{{end}}", "{{if .LocalRank}}x{{end}}"}, []string{"p", "quiet", "x"}, []string{"p", "loud"}},
		{"nested", []string{"p", "{{if .ResumeFrom}}a{{if .Rank}}b{{else}}c{{end}}d{{else}}e{{if .Rank}}f{{else}}g{{end}}{{end}}h"}, []string{"p", "abdh"}, []string{"p", "egh"}},
		{"the program stays", []string{"{{.ResumeFrom}}", "a"}, []string{"/ckpt/step 20", "a"}, []string{"", "a"}},
		{"more braces", []string{"{{{{.Rank}}}}", "{{{.Rank}}}", `{"a":{"b":{{.Rank}}}}`, "{{ x {{.Rank}}"},
			[]string{"{{3}}", "{3}", `{"a":{"b":3}}`, "{{ x 3"}, []string{"{{0}}", "{0}", `{"a":{"b":0}}`, "{{ x 0"}},
		{"two braces", []string{`{{"{{"}}.Names}}`, `{{"{{"}}.Rank}} {{.Rank}}`}, []string{"{{.Names}}", "{{.Rank}} 3"}, []string{"{{.Names}}", "{{.Rank}} 0"}},
	} {
		for fields, want := range map[template.Fields][]string{resumed: c.resumed, begun: c.begun} {
			before := slices.Clone(c.command)
			got, err := template.Expand(c.command, fields)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: got %q, %v, want %q", c.name, got, err, want)
			}
			if !slices.Equal(c.command, before) {
				t.Errorf("%s: the command has changed to %q", c.name, c.command)
			}
		}
	}
}

// TestOtherBracesStay checks that braces that are no template of gangrun reach the program unchanged.
func TestOtherBracesStay(t *testing.T) {
	command := []string{
		"p", "", "{{ jinja }}", `{{"a"}}`, "{{rank}}", "{.Rank}", "{{.}}", "{{..}}", "{{}}", "{{", "}}", "}}{{", "{{json .}}", "{{range .}}x{{end}}", "{{else}}", "{{end}}",
		"{{if x}}y{{end}}", "{{/* .rank */}}", "{{ $x := 1 }}", "{{ x.Rank }}", "{{x .ranks}}", "awk '{{print $1}}'", "{{#each}}{{/each}}", "{{{raw}}}", `{{ "{{" }}`, "$HOME `id` *", "\xff{{\xff}}",
	}
	for _, fields := range []template.Fields{resumed, begun} {
		if got, err := template.Expand(command, fields); err != nil || !slices.Equal(got, command) {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestCheckTemplates(t *testing.T) {
	const fields = ".Rank, .LocalRank, .Host, .CheckpointDir, .ResumeFrom"
	for _, c := range []struct {
		command   []string
		text      string
		hintHolds string
	}{
		{[]string{"p", "a{{.Foo}}b"}, `the template "{{.Foo}}" in the command names no field of gangrun's`, fields},
		{[]string{"p", "{{.Names}}"}, `the template "{{.Names}}" in the command names no field of gangrun's`, `to pass it on as it stands, write {{"{{"}}.Names}}`},
		{[]string{"p", "{{ .rank }}"}, `the template "{{ .rank }}" in the command names no field of gangrun's`, fields},
		{[]string{"p", "{{.Rank.X}}"}, `the template "{{.Rank.X}}" in the command names no field of gangrun's`, fields},
		{[]string{"p", "{{if .Foo}}x{{end}}"}, `the template "{{if .Foo}}" in the command names no field of gangrun's`, fields},
		{[]string{"p", "{{if .ResumeFrom}}{{else}}{{.Foo}}{{end}}"}, `the template "{{.Foo}}" in the command names no field of gangrun's`, fields},
		{[]string{"p", "{{if not .ResumeFrom}}x{{end}}"}, `the template "{{if not .ResumeFrom}}" in the command is more than gangrun can expand`, "{{else}}"},
		{[]string{"p", `{{printf "%d" .Rank}}`}, `the template "{{printf \"%d\" .Rank}}" in the command is more than gangrun can expand`, fields},
		{[]string{"p", "{{- .Rank -}}"}, `the template "{{- .Rank -}}" in the command is more than gangrun can expand`, fields},
		{[]string{"p", "{{if .Rank}}x"}, `the template "{{if .Rank}}" in the command has no {{end}}`, "in a later one"},
		{[]string{"p", "{{if .Rank}}x{{else}}y{{else}}z{{end}}"}, `the template "{{else}}" in the command is the second of one {{if}}`, "{{if .Field}}"},
		{[]string{"p", "{{if .Rank}}x{{else if .LocalRank}}z{{end}}"}, `the template "{{else if .LocalRank}}" in the command stands where only {{else}} may`, "{{if .Field}}"},
		{[]string{"p", "{{.Rank"}, `the template "{{.Rank" in the command is never closed`, "quotes"},
		{[]string{"p", "{{if", ".ResumeFrom}}--resume"}, `the template "{{if" in the command is never closed`, "quotes"},
		{[]string{"p", "{{.Rank " + strings.Repeat("x", 500)}, `the template "{{.Rank ` + strings.Repeat("x", 52) + `..." in the command is never closed`, "quotes"},
	} {
		err := template.Check(c.command)
		var bad *template.Error
		if !errors.As(err, &bad) || bad.Error() != c.text || !strings.Contains(bad.Hint(), c.hintHolds) {
			t.Errorf("%q: got %v (%+v), want %s", c.command, err, bad, c.text)
		}
	}
}

// FuzzExpand checks that an accepted command can be expanded for every rank. A command without braces must not change,
// and a literal must stand for any text.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"a\x00{{.Rank}}", "{{if .Rank}}a\x00b{{else}}c{{end}}", "{{{{.Host}}}}", `{{"{{"}}.X}}`, "{{if", "{{end}}{{else}}", "{{ .Foo }}", "{{{if .Rank}}}", "\xff{{"} {
		f.Add(seed, 3, "/x")
	}
	f.Fuzz(func(t *testing.T, joined string, rank int, from string) {
		command := strings.Split(joined, "\x00")
		checked := template.Check(command)
		got, err := template.Expand(command, template.Fields{Rank: rank, ResumeFrom: from})
		if (checked == nil) != (err == nil) {
			t.Fatalf("%q was checked with %v and expanded with %v", command, checked, err)
		}
		if !strings.Contains(joined, "{{") && !slices.Equal(got, command) {
			t.Fatalf("%q has no template, but became %q, %v", command, got, err)
		}
		if err == nil && (len(got) == 0 || len(got) > len(command)) {
			t.Fatalf("%q became %q", command, got)
		}
		literal := []string{strings.ReplaceAll(joined, "{{", `{{"{{"}}`)}
		if !strings.Contains(joined, "{{{") {
			if got, err := template.Expand(literal, template.Fields{}); err != nil || got[0] != joined {
				t.Fatalf("%q became %q, %v", literal, got, err)
			}
		}
	})
}
