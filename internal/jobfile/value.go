package jobfile

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
	"github.com/gangrun/gangrun/internal/suggest"
)

// wants returns a text that says which values a field can have.
func (f *Field) wants() string {
	switch f.Kind {
	case Number:
		return "a whole number"
	case Range:
		return "a whole number, or two as in 8..16"
	case Switch:
		return "true or false"
	case Path:
		return "a path"
	case Hosts:
		return "names in one text, as in h1,h2:4"
	case Network:
		return "a network, as in 10.0.0.0/16, or the name of an interface"
	case Duration:
		return "a duration with a unit, as in 30s"
	case Choice:
		return "one of " + strings.Join(f.Choices, ", ")
	case Stdin:
		return "the number of a rank, or one of " + strings.Join(f.Choices, ", ")
	case Env:
		return "a mapping of names to values"
	case Command, Words:
		return "a list of words, or one line of them"
	case Paths:
		return "a list of paths"
	case Names:
		return "a list of names of variables"
	case Mounts:
		return "a list of mounts, each as SOURCE[:TARGET][:ro or :rw]"
	case Size:
		return "a size with its unit, as in 8GiB"
	case Policy:
		return "a mapping of categories to actions"
	case Patience:
		return "a duration with a unit, as in 2m, strict, or a mapping of levels to them"
	case EarlyStop:
		return "off, advise, stop, or a mapping of verdicts to them"
	case Real:
		return "a number"
	case Group:
		if f.Name == "trial" {
			return "a mapping, or off"
		}
		return "a mapping"
	default:
		return "text"
	}
}

// scalar reads the value of a field that has a single value. The result can be passed to put.
func (f *Field) scalar(text string) (any, *fault) {
	switch f.Kind {
	case Number, Range:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, f.notNumber(text)
		}
		if plain := strconv.Itoa(n); plain != text { // some programs read 010 as 8, and others as 10
			return nil, faultf("", "%s wants a plain whole number, not %s", f.Name, quote(text))
		}
		return n, nil
	case Switch:
		on, ok := switched(text)
		if !ok {
			return nil, faultf("", "%s wants true or false, not %s", f.Name, quote(text))
		}
		return on, nil
	case Path:
		return text, pathFault(f.Name, text)
	case Network:
		return text, networkFault(f.Name, text)
	case Duration:
		if bad := noUnit(f.Name, text); bad != nil {
			return nil, bad
		}
		d, err := job.ParseDuration(text)
		if err != nil {
			return nil, faultf("", "%s wants a duration with a unit, as in 30s, 5m or 1h30m, not %s", f.Name, quote(text))
		}
		if d < f.shortest {
			return nil, faultf("whoever is well is heard of once a second, and may be silent for longer than that",
				"%s %s is too short, write %s or more", f.Name, d, f.shortest)
		}
		return d, nil
	case Choice:
		if !slices.Contains(f.Choices, text) {
			return nil, faultf("", "%s wants %s, not %s%s", f.Name, f.wants(), quote(text), suggest.DidYouMean(text, f.Choices))
		}
		return text, nil
	case Stdin:
		s, err := job.ParseStdin(text, job.MaxRanks)
		if err != nil {
			return nil, faultf("", "%s wants %s, not %s%s", f.Name, f.wants(), quote(text), suggest.DidYouMean(text, f.Choices))
		}
		return s, nil
	case Patience, EarlyStop:
		return text, f.parts(text)
	case Real:
		if v, err := strconv.ParseFloat(text, 64); err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, faultf("", "%s wants a number, not %s", f.Name, quote(text))
		}
		return text, nil
	case Size:
		size, err := job.ParseSize(text)
		if err != nil {
			return nil, faultf("", "%s wants %s, not %s", f.Name, f.wants(), quote(text))
		}
		return size, nil
	default:
		return text, nil
	}
}

// span parses text, the value of a field that may be a range such as 8..16. value is the number, or the larger
// number of the range. For a range, least is the field that takes the smaller number, and from is that number.
func (f *Field) span(text string) (value any, least *Field, from any, bad *fault) {
	first, last, two := strings.Cut(text, "..")
	if f.Kind != Range || !two {
		value, bad = f.scalar(text)
		return value, nil, nil, bad
	}
	value, bad = f.scalar(last)
	from, wrong := f.scalar(first)
	if bad != nil || wrong != nil || from.(int) < 0 || value.(int) < 1 {
		return nil, nil, nil, f.notNumber(text)
	}
	if from.(int) > value.(int) {
		return nil, nil, nil, faultf("", "%s %s begins with the larger number, write %s..%s", f.Name, quote(text), last, first)
	}
	least, _ = find("min-" + f.Name)
	return value, least, from, nil
}

// otherRange matches a range in the form that other programs use.
var otherRange = regexp.MustCompile(`^([0-9]+) ?(?:-|:|,|…|to|\.{3}) ?([0-9]+)$`)

// notNumber returns the fault for a text that is not a whole number. If the field may be a range, the text is not a
// range, either.
func (f *Field) notNumber(text string) *fault {
	wants, hint := "a whole number", ""
	if m := otherRange.FindStringSubmatch(text); f.Kind == Range && m != nil {
		wants, hint = f.wants(), fmt.Sprintf("write %s..%s for no fewer than %[1]s and no more than %[2]s", m[1], m[2])
	} else if f.Kind == Range && strings.Contains(text, "..") {
		wants = f.wants()
	}
	return faultf(hint, "%s wants %s, not %s", f.Name, wants, quote(text))
}

// switched reads a truth value. It accepts all words that have been truth values in versions of YAML.
func switched(text string) (on, ok bool) {
	switch strings.ToLower(text) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// pathFault checks a path. name is the name of the path's field.
func pathFault(name, path string) *fault {
	switch {
	case strings.ContainsRune(path, 0):
		return faultf("", "%s %s contains a NUL byte, as no path does", name, quote(path))
	case path == "~" || strings.HasPrefix(path, "~/"):
		return faultf("write the whole path", "%s %s begins with ~, which only a shell expands", name, quote(path))
	}
	return nil
}

// maxInterface is the largest length in bytes that Linux allows for the name of an interface.
const maxInterface = 15

// networkFault checks the form of a network. It does not check whether the network exists.
func networkFault(name, text string) *fault {
	const hint = "write a network with the number of its bits, as 10.0.0.0/16, or the name of an interface, as eth0; ip -brief address lists both"
	if strings.Contains(text, "/") {
		if _, err := netip.ParsePrefix(text); err != nil {
			return faultf(hint, "%s %s is no network", name, quote(text))
		}
		return nil
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return faultf(hint, "%s %s is an address, not a network", name, quote(text))
	}
	if text == "" || text == "." || text == ".." || len(text) > maxInterface || strings.ContainsFunc(text, func(r rune) bool {
		return r == ':' || r == ',' || unicode.IsSpace(r) || unicode.IsControl(r)
	}) {
		return faultf(hint, "%s %s cannot be the name of an interface", name, quote(text))
	}
	return nil
}

// variableFault checks the name of an environment variable. name is the name of the variable's field.
func variableFault(name, variable string) *fault {
	if variable == "" || strings.ContainsAny(variable, "=\x00") {
		return faultf("", "%s has %s, which is no name of a variable", name, quote(variable))
	}
	return nil
}

// put stores a value in a field. If the value is a mapping, put adds its entries to those that the field has. Any other
// value replaces the old value.
func (f *Field) put(s *job.Spec, value any) {
	switch p := f.at(s).(type) {
	case *map[string]string:
		add(p, value.(map[string]string))
	case *map[job.Category]job.Action:
		add(p, value.(map[job.Category]job.Action))
	case *[]string:
		*p = slices.Clone(value.([]string))
	default:
		place := reflect.ValueOf(p).Elem()
		place.Set(reflect.ValueOf(value).Convert(place.Type()))
	}
}

func add[K comparable, V any](p *map[K]V, entries map[K]V) {
	if *p == nil {
		*p = make(map[K]V, len(entries))
	}
	maps.Copy(*p, entries)
}

// own replaces the mappings of s by copies, so that put does not change mappings that others use.
func own(s *job.Spec) {
	s.Env, s.Trial.Env, s.Policy = maps.Clone(s.Env), maps.Clone(s.Trial.Env), maps.Clone(s.Policy)
	s.RetryOnDiverge.Env = maps.Clone(s.RetryOnDiverge.Env)
}

// reset sets a field back to its default value.
func (f *Field) reset(s *job.Spec) {
	standing := job.Default()
	reflect.ValueOf(f.at(s)).Elem().Set(reflect.ValueOf(f.at(&standing)).Elem())
}

// alone returns what is wrong with a value in any job. It checks the value in a job in which everything else is valid.
func (f *Field) alone(value any) []*fault {
	s := job.Default()
	s.Command, s.Ranks, s.CheckpointDir = []string{"-"}, job.MaxRanks, "/"
	if strings.HasPrefix(f.Name, "container.") {
		s.Image, s.Workdir = "-", "/workdir"
	}
	s.Curve.Target = "0"
	if f.Name == "retry-on-diverge.skip-steps" || f.Name == "retry-on-diverge.env" {
		s.RetryOnDiverge.Resume = job.DivergeEarlier
	}
	f.put(&s, value)
	absolute(&s, "/")
	var bad []*fault
	for _, err := range parts(jobcheck.Spec(s)) {
		bad = append(bad, faultOf(err))
	}
	if words, ok := value.([]string); ok && f.Kind == Command && f.Name != "command" && (len(words) == 0 || words[0] == "") {
		bad = append(bad, faultf("", "%s names no program", f.Name)) // jobcheck.Spec checks the job's command
	}
	return bad
}

// absolute makes the paths of s absolute. Relative paths are relative to cwd. If the working
// directory is not set, it becomes cwd.
func absolute(s *job.Spec, cwd string) {
	for _, f := range table {
		if f.Kind != Path {
			continue
		}
		p := f.at(s).(*string)
		if *p == "" && p != &s.Workdir {
			continue
		}
		if !filepath.IsAbs(*p) {
			*p = filepath.Join(cwd, *p)
		}
		*p = filepath.Clean(*p)
	}
	if job.ImageFile(s.Image) {
		if !filepath.IsAbs(s.Image) {
			s.Image = filepath.Join(cwd, s.Image)
		}
		s.Image = filepath.Clean(s.Image)
	}
}

// parts returns the errors that are joined in err.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

// variable reads the K=V, or only the K, of an Env flag.
func variable(text string, lookup func(string) (string, bool)) (map[string]string, *fault) {
	name, value, given := strings.Cut(text, "=")
	if bad := variableFault("env", name); bad != nil {
		return nil, bad
	}
	if !given {
		if value, given = lookup(name); !given {
			return nil, faultf(fmt.Sprintf("write -e %s=VALUE, or set it before gangrun is started", name),
				"%s is not set in the environment of gangrun", quote(name))
		}
	}
	return map[string]string{name: value}, nil
}
