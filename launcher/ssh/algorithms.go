package ssh

import (
	"slices"
	"strings"

	xssh "golang.org/x/crypto/ssh"
)

func (c Config) readAlgorithms(e *Endpoint, o *options) error {
	supported := xssh.SupportedAlgorithms()
	insecure := xssh.InsecureAlgorithms()
	for _, k := range []struct {
		keyword            string
		defaults, insecure []string
		to                 *[]string
	}{
		{"hostkeyalgorithms", supported.HostKeys, insecure.HostKeys, &e.HostKeyAlgorithms},
		{"kexalgorithms", supported.KeyExchanges, insecure.KeyExchanges, &e.KeyExchanges},
		{"ciphers", supported.Ciphers, insecure.Ciphers, &e.Ciphers},
		{"macs", supported.MACs, insecure.MACs, &e.MACs},
	} {
		at := o.first(k.keyword)
		if at.value() == "" {
			continue
		}
		*k.to = algorithms(at.value(), k.defaults, append(slices.Clone(k.defaults), k.insecure...))
		if len(*k.to) == 0 {
			return at.fail("add one of: "+strings.Join(k.defaults, ","), "%s %q leaves none that gangrun can do", k.keyword, at.value())
		}
	}
	return nil
}

// algorithms reads a list of algorithms: it replaces the defaults, or with +,
// - or ^ before it adds to their end, takes from them, or puts first.
func algorithms(list string, defaults, known []string) []string {
	sign := byte(0)
	if list != "" && strings.IndexByte("+-^", list[0]) >= 0 {
		sign, list = list[0], list[1:]
	}
	var named []string
	for _, pattern := range strings.Split(list, ",") {
		for _, name := range known {
			if matchPattern(name, pattern) && !slices.Contains(named, name) {
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
