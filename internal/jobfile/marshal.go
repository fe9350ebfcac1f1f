package jobfile

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
)

// Marshal returns spec as a job file. Parse reads the same Spec from it, except for secret
// values, which Marshal replaces by job.Hidden. Marshal leaves out settings that are empty both
// in spec and by default. "gangrun mpiexec" can start several programs. A comment in the file
// then names all of them but the first.
func Marshal(spec job.Spec) ([]byte, error) {
	spec = spec.Redacted()
	standing := job.Default()
	root := &yaml.Node{Kind: yaml.MappingNode}
	group := root
	for _, f := range table {
		if spec.Image == "" && (f.Name == "container" || strings.HasPrefix(f.Name, "container.")) {
			continue
		}
		if f.Kind == Group {
			group = &yaml.Node{Kind: yaml.MappingNode}
			root.Content = append(root.Content, scalar(f.Name), group)
			continue
		}
		at := f.at(&spec)
		if empty(at) && empty(f.at(&standing)) {
			continue
		}
		to, name := root, f.Name
		if _, inner, inside := strings.Cut(f.Name, "."); inside {
			to, name = group, inner
		}
		to.Content = append(to.Content, scalar(name), node(at))
	}
	for i, app := range spec.Apps {
		if i == 0 {
			root.HeadComment = fmt.Sprintf("The first of %d programs of one gang, which gangrun mpiexec has started:", len(spec.Apps))
		}
		root.HeadComment += fmt.Sprintf("\n%d ranks of %q", app.Ranks, app.Command)
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("cannot write the job as YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("cannot write the job as YAML: %w", err)
	}
	return out.Bytes(), nil
}

// empty reports whether the place of a field has nothing, or a zero.
func empty(at any) bool {
	v := reflect.ValueOf(at).Elem()
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// node returns the YAML for the value in the place of a field.
func node(at any) *yaml.Node {
	switch v := at.(type) {
	case *[]string:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, s := range *v {
			n.Content = append(n.Content, scalar(s))
		}
		return n
	case *map[string]string:
		return mappingNode(*v)
	case *map[job.Category]job.Action:
		return mappingNode(*v)
	case *job.Patience:
		return partsNode(string(*v), jobcheck.Patience(*v))
	case *job.EarlyStop:
		return partsNode(string(*v), jobcheck.EarlyStop(*v))
	case *int, *bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: written(at)}
	default:
		return scalar(written(at))
	}
}

func mappingNode[K, V ~string](m map[K]V) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		n.Content = append(n.Content, scalar(string(k)), scalar(string(m[k])))
	}
	return n
}

// scalar returns the YAML for a text. Without quotes, YAML would read some texts as something else. scalar quotes such
// a text. If a text is not UTF-8, scalar writes it as !!binary.
func scalar(s string) *yaml.Node {
	if !utf8.ValidString(s) {
		return &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.TaggedStyle, Tag: "!!binary",
			Value: base64.StdEncoding.EncodeToString([]byte(s))}
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if odd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }; strings.ContainsFunc(s, odd) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// written returns the value of a field as it is written in a job file. at points to a value that is
// neither a list nor a mapping.
func written(at any) string {
	switch v := at.(type) {
	case *int:
		return strconv.Itoa(*v)
	case *bool:
		return strconv.FormatBool(*v)
	case *job.Size:
		return v.String()
	case *job.Duration:
		s := v.String() // 1h0m0s becomes 1h, and 5m0s becomes 5m
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		return s
	default:
		return reflect.ValueOf(at).Elem().String()
	}
}
