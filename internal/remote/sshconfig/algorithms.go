package sshconfig

import (
	"slices"
	"strings"

	xssh "golang.org/x/crypto/ssh"
)

// readAlgorithms sets the algorithms of e.
func (c Config) readAlgorithms(e *Endpoint, o *options) error {
	supported := xssh.SupportedAlgorithms()
	insecure := xssh.InsecureAlgorithms()
	for _, k := range []struct {
		keyword            string
		defaults, insecure []string
		to                 *[]string
	}{
		{"hostkeyalgorithms", supported.HostKeys, insecure.HostKeys, &e.Algorithms.HostKeys},
		{"kexalgorithms", supported.KeyExchanges, insecure.KeyExchanges, &e.Algorithms.KeyExchanges},
		{"ciphers", supported.Ciphers, insecure.Ciphers, &e.Algorithms.Ciphers},
		{"macs", supported.MACs, insecure.MACs, &e.Algorithms.MACs},
	} {
		at := o.first(k.keyword)
		if at.value() == "" {
			continue
		}
		*k.to = algorithms(at.value(), k.defaults, append(slices.Clone(k.defaults), k.insecure...))
		if len(*k.to) == 0 {
			return at.fail("add one of: "+strings.Join(k.defaults, ","), "%s %q leaves none that gangrun supports", k.keyword, at.value())
		}
	}
	return nil
}

// algorithms returns the algorithms of known that a list selects. The list replaces the defaults, unless it begins with
// a sign. With +, the list is added at the end of the defaults. With ^, it is added at their beginning. With -, it is
// removed from the defaults.
func algorithms(list string, defaults, known []string) []string {
	sign := byte(0)
	if list != "" && strings.IndexByte("+-^", list[0]) >= 0 {
		sign, list = list[0], list[1:]
	}
	var named []string
	for _, pattern := range strings.Split(list, ",") {
		for _, name := range known {
			if MatchPattern(name, pattern) && !slices.Contains(named, name) {
				named = append(named, name)
			}
		}
	}
	others := slices.DeleteFunc(slices.Clone(defaults), func(name string) bool { return slices.Contains(named, name) })
	switch sign {
	case '+':
		more := slices.DeleteFunc(named, func(name string) bool { return slices.Contains(defaults, name) })
		return append(slices.Clone(defaults), more...)
	case '-':
		return others
	case '^':
		return append(named, others...)
	}
	return named
}
