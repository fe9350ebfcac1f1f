package jobfile

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
)

// Options makes a Spec from the settings of a user, and remembers where each value came from.
// Later settings replace earlier ones. A caller first applies the job file, and then sets the
// flags. Options must not be used by several goroutines at the same time.
type Options struct {
	spec     job.Spec
	lookup   func(string) (string, bool)
	settings []setting // in the order in which they were made
}

// NewOptions returns Options with the defaults. lookup finds variables of the caller's
// environment, as os.LookupEnv does.
func NewOptions(lookup func(name string) (value string, found bool)) *Options {
	return &Options{spec: job.Default(), lookup: lookup}
}

// Apply applies the settings of a job file.
func (o *Options) Apply(f *File) {
	f.Apply(&o.spec)
	o.settings = append(o.settings, f.settings...)
}

// Set sets the flag name to value, which is the text that the user wrote. For a Switch, value
// is "true" or "false". Set returns Errors if the value is not valid for the flag. Finish
// checks whether it fits the other settings.
func (o *Options) Set(name, value string) error {
	f, ok := findFlag(name)
	if !ok {
		return Errors{{Flag: name, Text: "is no flag of this command"}}
	}
	where := origin{flag: name}
	var v, from any
	var least *Field
	var bad *fault
	part := ""
	if f.Kind == Env {
		var vars map[string]string
		vars, bad = variable(value, o.lookup)
		for part = range vars {
		}
		v = vars
	} else if f.Kind == Mounts {
		v, bad = o.mount(f, value)
	} else {
		v, least, from, bad = f.span(value)
	}
	if bad != nil {
		return Errors{where.error(bad)}
	}
	if err := o.set(setting{f, part, v, where}); err != nil || least == nil {
		return err
	}
	return o.set(setting{least, "", from, where})
}

// mount adds a mount to the mounts that earlier flags have set. The first flag replaces the mounts of the job file.
func (o *Options) mount(f *Field, text string) ([]string, *fault) {
	if _, err := job.ParseMount(text, "/workdir"); err != nil {
		return nil, faultOf(err)
	}
	before, _ := o.from(f, "")
	if before.origin.flag == "" {
		return []string{text}, nil
	}
	return append(slices.Clone(before.value.([]string)), text), nil
}

// SetCommand sets the command to words, the arguments after "--".
func (o *Options) SetCommand(words []string) error {
	f, _ := find("command")
	return o.set(setting{f, "", words, origin{}})
}

func (o *Options) set(s setting) error {
	var errs Errors
	for _, bad := range s.field.alone(s.value) {
		errs = append(errs, s.origin.error(bad))
	}
	if len(errs) > 0 {
		return errs
	}
	s.field.put(&o.spec, s.value)
	o.settings = append(o.settings, s)
	return nil
}

// Relative reports whether any path of the job depends on the argument cwd of Finish. A working
// directory that is not set also depends on cwd.
func (o *Options) Relative() bool {
	spec := o.spec
	for _, f := range table {
		if f.Kind != Path {
			continue
		}
		p := f.at(&spec).(*string)
		if !filepath.IsAbs(*p) && (*p != "" || p == &spec.Workdir) {
			return true
		}
	}
	return false
}

// Finish checks the Spec and returns it with absolute paths. Relative paths are relative to
// cwd, which must be absolute. Errors name the line or flag of the value.
func (o *Options) Finish(cwd string) (job.Spec, error) {
	spec := o.spec
	own(&spec)
	absolute(&spec, cwd)
	o.inherit(&spec)
	errs := o.hidden(spec)
	for _, err := range parts(jobcheck.Spec(spec)) {
		errs = append(errs, o.blame(spec, err))
	}
	if len(errs) == 0 {
		return spec, nil
	}
	rank := func(e *Error) int { // errors in the file come first, then errors in flags, then others
		switch {
		case e.File != "":
			return 0
		case e.Flag != "":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return job.Spec{}, errs
}

// from returns the last setting of a field, or of one part of the field.
func (o *Options) from(f *Field, part string) (setting, bool) {
	for _, s := range slices.Backward(o.settings) {
		if s.field == f && s.part == part {
			return s, true
		}
	}
	return setting{}, false
}

// inherit sets secrets from the caller's environment if env does not set them. It also does so if env has only
// job.Hidden for them, as in the job file of an earlier run. These variables are then secret wherever the variables in
// env are.
func (o *Options) inherit(spec *job.Spec) {
	for _, name := range spec.Secret {
		if value, set := spec.Env[name]; set && value != job.Hidden {
			continue
		}
		if value, found := o.lookup(name); found {
			if spec.Env == nil {
				spec.Env = map[string]string{}
			}
			spec.Env[name] = value
		}
	}
}

// hidden returns errors for secrets whose value is job.Hidden, as in the job file of an earlier run. A rank would use
// that text as the value.
func (o *Options) hidden(spec job.Spec) Errors {
	var errs Errors
	for i := range table {
		f := &table[i]
		if f.Kind != Env {
			continue
		}
		vars := *f.at(&spec).(*map[string]string)
		for _, name := range slices.Compact(slices.Sorted(slices.Values(spec.Secret))) {
			if vars[name] != job.Hidden {
				continue
			}
			s, _ := o.from(f, name)
			hint := fmt.Sprintf("export %s, or give it with -e %s=VALUE", name, name)
			if f.Name != "env" {
				hint = "write its value there, or take the line away"
			}
			errs = append(errs, s.origin.error(faultf(hint, "the value of the secret %s is hidden here, not written", quote(name))))
		}
	}
	return errs
}

// blame finds the value that causes an error of the whole Spec. It is the value that makes the error disappear if it is
// set back to its default.
func (o *Options) blame(spec job.Spec, err error) *Error {
	all := len(parts(jobcheck.Spec(spec)))
	for _, s := range o.settings {
		if s.part != "" {
			continue
		}
		without := spec
		s.field.reset(&without)
		absolute(&without, "/")
		rest := parts(jobcheck.Spec(without))
		same := func(other error) bool { return other.Error() == err.Error() }
		if len(rest) < all && !slices.ContainsFunc(rest, same) {
			last, _ := o.from(s.field, "")
			return last.origin.error(faultOf(err))
		}
	}
	bad := faultOf(err)
	if len(spec.Command) == 0 {
		bad.hint = "write it after --, or as command: in the job file"
	}
	return origin{}.error(bad)
}
