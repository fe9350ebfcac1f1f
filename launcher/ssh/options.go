package ssh

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
)

// maxIncludes is how deep Include may nest, as in OpenSSH.
const maxIncludes = 16

// An option is one line of an ssh_config that applies.
type option struct {
	args   []string
	rest   string // the line after its keyword, as written
	file   string
	line   int
	system bool // of the system's file, not the user's
	order  int  // in which the lines were read, from 1
}

func (o option) fail(fix, format string, args ...any) error {
	return &ConfigError{File: o.file, Line: o.line, Text: fmt.Sprintf(format, args...), Fix: fix}
}

// value is the option's only or first argument.
func (o option) value() string {
	if len(o.args) == 0 {
		return ""
	}
	return o.args[0]
}

// options is what the files say for one host: for each keyword, in lower case,
// the lines that apply, in order. For most keywords only the first one counts.
type options struct {
	config Config
	target target
	lines  map[string][]option
	read   int  // lines kept
	final  bool // the second reading, for Match final
	wanted bool // somebody asked for a second reading
	notes  []string
}

func (o *options) first(keyword string) option {
	if lines := o.lines[keyword]; len(lines) > 0 {
		return lines[0]
	}
	return option{}
}

// host is what Host and Match host look at: the name given, or in the second
// reading, and for Match, the one that HostName made of it.
func (o *options) host() string {
	if h := o.first("hostname").value(); h != "" {
		return strings.NewReplacer("%%", "%", "%h", o.target.host).Replace(h)
	}
	return o.target.host
}

func (o *options) user() string {
	if o.target.user != "" {
		return o.target.user
	}
	if u := o.first("user").value(); u != "" {
		return u
	}
	return o.config.User
}

// note keeps text for the user, once.
func (o *options) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(o.notes, text) {
		o.notes = append(o.notes, text)
	}
}

// readOptions reads both files, twice where a Match final wants it.
func readOptions(c Config, t target) (*options, error) {
	o := &options{config: c, target: t, lines: map[string][]option{}}
	if err := o.files(); err != nil {
		return nil, err
	}
	if o.wanted {
		o.final = true
		if err := o.files(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (o *options) files() error {
	name := o.target.host
	if o.final {
		name = o.host()
	}
	if err := o.file(o.config.UserFile, name, false, 0); err != nil {
		return err
	}
	return o.file(o.config.SystemFile, name, true, 0)
}

// file reads one file; one that does not exist says nothing.
func (o *options) file(path, name string, system bool, depth int) error {
	if path == "" {
		return nil
	}
	if depth > maxIncludes {
		return &ConfigError{File: path, Text: "Include nests too deep", Fix: "see whether a file includes itself"}
	}
	data, err := readSetting(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &ConfigError{File: path, Text: err.Error(), Fix: "make the file readable, or move it away"}
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
		at := option{rest: rest, file: path, line: n, system: system}
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

// add keeps a line, except one that the second reading has seen already.
func (o *options) add(keyword string, at option) {
	for _, have := range o.lines[keyword] {
		if have.file == at.file && have.line == at.line {
			return
		}
	}
	o.read++
	at.order = o.read
	o.lines[keyword] = append(o.lines[keyword], at)
}

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
			return at.fail("mend the pattern", "pattern %q: %v", pattern, err)
		}
		for _, file := range found {
			if err := o.file(file, name, at.system, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// trusted refuses a file that somebody else could have written.
func trusted(path string, uid int) error {
	info, err := os.Stat(path)
	if err != nil {
		return &ConfigError{File: path, Text: err.Error(), Fix: "make the file readable, or move it away"}
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if owner != 0 && owner != uid || info.Mode().IsRegular() && info.Mode().Perm()&0o022 != 0 {
		return &ConfigError{File: path, Text: fmt.Sprintf("owner %d and mode %04o let others write it", owner, info.Mode().Perm()),
			Fix: "chmod 600 " + quote(path) + ", and see that it is yours"}
	}
	return nil
}
