package jobfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/gangrun/gangrun/internal/job"
)

// File is a job file that has been read: what it sets, and where.
type File struct {
	name     string
	settings []setting
}

// setting is one value that was set.
type setting struct {
	field  *Field
	part   string // the one variable or category that it sets, of a mapping
	value  any
	origin origin
}

// origin is where a value was set: in a file, or by a flag.
type origin struct {
	file         string
	line, column int
	flag         string
}

func (o origin) error(bad *fault) *Error {
	return &Error{File: o.file, Line: o.line, Column: o.column, Flag: o.flag, Text: bad.text, hint: bad.hint}
}

// Load reads the job file at path.
func Load(path string) (*File, error) {
	data, err := read(path)
	if err != nil {
		cause := err
		if p := (*fs.PathError)(nil); errors.As(err, &p) {
			cause = p.Err
		}
		return nil, Errors{{Text: fmt.Sprintf("cannot read the job file %q: %v", path, cause),
			hint: "give the path of a job file; a command needs none, as in: gangrun run -n 4 -- python train.py"}}
	}
	return Parse(path, data)
}

// read returns what is in the file, or enough of it to see that it is too large.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

// Parse reads the YAML in data; name is the file's in errors, which are
// Errors: everything that can be told to be wrong, in the order of the file.
// An empty file sets nothing.
func Parse(name string, data []byte) (*File, error) {
	root, bad := document(name, data)
	if bad != nil {
		return nil, Errors{bad}
	}
	r := reader{name: name}
	r.root(root)
	if len(r.errs) > 0 {
		return nil, r.errs.sorted(name, r.more)
	}
	return &File{name: name, settings: r.settings}, nil
}

// Apply sets in spec what the file sets. Variables of env and entries of
// policy are added to those of spec, everything else replaces what is there;
// relative paths stay relative.
func (f *File) Apply(spec *job.Spec) {
	own(spec)
	for _, s := range f.settings {
		s.field.put(spec, s.value)
	}
}
