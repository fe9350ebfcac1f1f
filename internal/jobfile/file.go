package jobfile

import (
	"errors"
	"fmt"
	"io/fs"

	"go.yaml.in/yaml/v4"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/yamldoc"
)

// MaxSize limits the size of a job file, in bytes, before and after its aliases are expanded.
const MaxSize = 1 << 20

// what is the name of the file in errors about its YAML.
const what = "a job file"

// File is a job file that has been read: its settings, and their positions.
type File struct {
	name     string
	settings []setting
}

// setting is one value that was set.
type setting struct {
	field  *Field
	part   string // for a mapping: the one variable or category that is set
	value  any
	origin origin
}

// origin says where a value was set: in a file, or by a flag.
type origin struct {
	file         string
	line, column int
	flag         string
}

func (o origin) error(bad *fault) *Error {
	return &Error{File: o.file, Line: o.line, Column: o.column, Flag: o.flag, Text: bad.text, hint: bad.hint}
}

// Load reads the job file at path. It calls readFile for the content of the file. readFile may
// return up to limit+1 bytes of a file that is longer than limit.
func Load(path string, readFile func(path string, limit int64) ([]byte, error)) (*File, error) {
	data, err := readFile(path, MaxSize)
	var cause *fs.PathError
	switch {
	case err == nil:
		return Parse(path, data)
	case errors.As(err, &cause):
		return nil, Errors{{Text: fmt.Sprintf("cannot read the job file %q: %v", path, cause.Err),
			hint: "give the path of a job file; a command needs none, as in: gangrun run -n 4 -- python train.py"}}
	}
	return nil, fmt.Errorf("cannot read the job file %q: %w", path, err)
}

// Parse reads a job file from data. name is the file's name in errors. The error is of type
// Errors and has all errors that can be found, in the order of the file. An empty file has
// no settings.
func Parse(name string, data []byte) (*File, error) {
	root, bad := yamldoc.Parse(data, what, MaxSize)
	if bad != nil {
		return nil, Errors{{File: name, Line: bad.Line, Column: bad.Column, Text: bad.Text, hint: bad.Hint}}
	}
	r := reader{name: name}
	yamldoc.UnknownTags(root, func(n *yaml.Node) {
		r.bad(n, faultf("take the tag away", "the tag %s is not allowed here in %s", quote(n.Tag), what))
	})
	r.root(root)
	if len(r.errs) > 0 {
		return nil, sorted(r.errs, name, r.more)
	}
	return &File{name: name, settings: r.settings}, nil
}

// Apply copies the settings of the file to spec. It adds the file's env and policy to those of
// spec. Every other setting of the file replaces that of spec. Relative paths stay relative.
func (f *File) Apply(spec *job.Spec) {
	own(spec)
	for _, s := range f.settings {
		s.field.put(spec, s.value)
	}
}
