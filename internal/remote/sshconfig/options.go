package sshconfig

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gangrun/gangrun/internal/remote/shell"
)

// maxIncludes limits how deep Include may nest, as in OpenSSH.
const maxIncludes = 16

// option is a line of an ssh_config that applies to the host.
type option struct {
	args   []string
	file   string
	line   int
	system bool // the line is in the system's file, not in the user's
	order  int  // the number of the line among the lines that apply, from 1
}

// fail returns an error about the line.
func (o option) fail(fix, format string, args ...any) error {
	return &Error{File: o.file, Line: o.line, Text: fmt.Sprintf(format, args...), Fix: fix}
}

// value returns the first argument.
func (o option) value() string {
	if len(o.args) == 0 {
		return ""
	}
	return o.args[0]
}

// options holds the lines that apply to one host. The keys are keywords in lower case. The lines of a keyword are in
// the order of the files. For most keywords only the first line counts.
type options struct {
	config Config
	asked  Host // the host that the caller asked for
	lines  map[string][]option
	count  int  // number of lines
	final  bool // this is the second pass, for Match final
	again  bool // a Match final needs a second pass
	notes  []string
}

// first returns the first line of a keyword, or an option without arguments.
func (o *options) first(keyword string) option {
	if lines := o.lines[keyword]; len(lines) > 0 {
		return lines[0]
	}
	return option{}
}

// host returns the name or address to connect to. That is HostName, or else the name that the caller asked for.
func (o *options) host() string {
	if h := o.first("hostname").value(); h != "" {
		return strings.NewReplacer("%%", "%", "%h", o.asked.Name).Replace(h)
	}
	return o.asked.Name
}

// user returns the user who logs in.
func (o *options) user() string {
	if o.asked.User != "" {
		return o.asked.User
	}
	if u := o.first("user").value(); u != "" {
		return u
	}
	return o.config.User
}

// note adds a note for the user, unless the note is there already.
func (o *options) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(o.notes, text) {
		o.notes = append(o.notes, text)
	}
}

// readOptions reads both files. If a Match final needs it, readOptions reads them twice.
func readOptions(c Config, asked Host) (*options, error) {
	o := &options{config: c, asked: asked, lines: map[string][]option{}}
	if err := o.files(); err != nil {
		return nil, err
	}
	if o.again {
		o.final = true
		if err := o.files(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// files reads both files. Host lines compare the name that the caller asked for. In the second pass, they compare the
// name to connect to.
func (o *options) files() error {
	name := o.asked.Name
	if o.final {
		name = o.host()
	}
	if err := o.file(o.config.UserFile, name, false, 0); err != nil {
		return err
	}
	return o.file(o.config.SystemFile, name, true, 0)
}

// file reads one file. A file that does not exist counts as an empty file.
func (o *options) file(path, name string, system bool, depth int) error {
	if path == "" {
		return nil
	}
	if depth > maxIncludes {
		return &Error{File: path, Text: "Include nests too deep", Fix: "see whether a file includes itself"}
	}
	data, err := ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &Error{File: path, Text: err.Error(), Fix: "make the file readable, or move it away"}
	}
	if !system {
		if err := trusted(path, o.config.UID); err != nil {
			return err
		}
	}
	active := true
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for n := 1; lines.Scan(); n++ {
		keyword, rest := splitKeyword(lines.Text())
		if keyword == "" {
			continue
		}
		at := option{file: path, line: n, system: system}
		switch keyword {
		case "proxycommand", "remotecommand", "localcommand", "knownhostscommand":
			at.args = []string{rest}
		default:
			if at.args, err = splitArgs(rest); err != nil {
				return at.fail("close the quote", "%v", err)
			}
		}
		if len(at.args) == 0 {
			return at.fail("give it a value, or remove the line", "%s has no value", keyword)
		}
		switch {
		case keyword == "host":
			active = matchHost(name, at.args)
		case keyword == "match":
			if active, err = o.match(name, at); err != nil {
				return err
			}
		case !active:
		case keyword == "include":
			if err := o.include(at, name, depth); err != nil {
				return err
			}
		default:
			o.add(keyword, at)
		}
	}
	return lines.Err()
}

// add adds a line, unless the first pass has added it already.
func (o *options) add(keyword string, at option) {
	for _, have := range o.lines[keyword] {
		if have.file == at.file && have.line == at.line {
			return
		}
	}
	o.count++
	at.order = o.count
	o.lines[keyword] = append(o.lines[keyword], at)
}

// include reads the files that an Include line names.
func (o *options) include(at option, name string, depth int) error {
	for _, pattern := range at.args {
		path, err := o.config.tilde(pattern)
		if err != nil {
			return at.fail("name a file", "%v", err)
		}
		if !filepath.IsAbs(path) {
			dir := filepath.Join(o.config.Home, ".ssh")
			if at.system {
				dir = filepath.Dir(o.config.SystemFile)
			}
			path = filepath.Join(dir, path)
		}
		found, err := filepath.Glob(path)
		if err != nil {
			return at.fail("fix the pattern", "pattern %q: %v", pattern, err)
		}
		for _, file := range found {
			if err := o.file(file, name, at.system, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// trusted returns an error if another user could have written a file.
func trusted(path string, uid int) error {
	info, err := os.Stat(path)
	if err != nil {
		return &Error{File: path, Text: err.Error(), Fix: "make the file readable, or move it away"}
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if owner != 0 && owner != uid || info.Mode().IsRegular() && info.Mode().Perm()&0o022 != 0 {
		return &Error{File: path, Text: fmt.Sprintf("owner %d and mode %04o let others write it", owner, info.Mode().Perm()),
			Fix: "chmod 600 " + shell.Quote(path) + ", and see that it is yours"}
	}
	return nil
}
