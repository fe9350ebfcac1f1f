package inventory

import (
	"net/netip"
	"strconv"
	"strings"
)

// maxName is the maximum length of the name of a host, as in DNS, and of the name of a user, a rack or a
// switch.
const maxName = 253

// hostName returns text if it is the name or the address of a host: letters, digits, dots, dashes
// and underscores, or an IPv6 address in brackets. It returns an IPv6 address without the brackets,
// in the form of RFC 5952.
func hostName(text string) (string, *fault) {
	const hint = "a host is a name of letters, digits, dots, dashes and underscores, an IPv4 address, or an IPv6 address in brackets, as in [fd00::1]"
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.Contains(text, ":") {
		inner, behind, closed := strings.Cut(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !closed || behind != "" || err != nil || !a.Is6() || len(text) > maxName || a.Zone() != "" && !plainName(a.Zone()) {
			return "", faultf(hint, "%s is no IPv6 address in brackets", quote(text))
		}
		return a.String(), nil
	}
	switch {
	case text == "":
		return "", faultf(hint, "a host has no name")
	case len(text) > maxName:
		return "", faultf("a host's name has at most "+strconv.Itoa(maxName)+" characters", "%s is too long for a host's name", quote(text))
	case strings.Count(text, ":") > 1 && isAddress(text):
		return "", faultf("write ["+text+"]", "the IPv6 address %s stands without brackets", quote(text))
	case strings.ContainsAny(text, "[]"):
		return "", faultf("node lists can be read from --hosts and from the YAML inventory; elsewhere write a line for each host", "%s is no host, but a node list", quote(text))
	case !plainName(text) || text[0] == '-' || text[0] == '.' || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "-") || strings.Contains(text, ".."):
		return "", faultf(hint, "%s is no host", quote(text))
	case strings.Trim(text, "0123456789.") == "" && !isAddress(text):
		if strings.Contains(text, ".") {
			return "", faultf("an IPv4 address is four numbers from 0 to 255, as in 10.0.0.1", "%s is no IPv4 address", quote(text))
		}
		return "", faultf("write slots as HOST:4, or as HOST slots=4 in a hostfile", "%s is a number, no host", quote(text))
	}
	return text, nil
}

// plainName reports whether text has only the characters of a host's name.
func plainName(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return text != ""
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// userName returns a fault if a login name is not valid.
func userName(text string) *fault {
	if !plainName(text) || text[0] == '-' || len(text) > maxName {
		return faultf("a user's name has letters, digits, dots, dashes and underscores", "%s is no name of a user", quote(text))
	}
	return nil
}

// label returns a fault if the name of a rack or a switch is not valid.
func label(what, text string) *fault {
	if text == "" || len(text) > maxName || strings.TrimSpace(text) != text || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return faultf("write a name of up to "+strconv.Itoa(maxName)+" characters, as in r1", "%s is no name of a %s", quote(text), what)
	}
	return nil
}

// apart splits [USER@]HOST[:REST] into its parts, but does not check them. It does not split at a colon within
// brackets.
func apart(word string) (user, host, rest string, hasUser, hasRest bool) {
	host = word
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		user, host, hasUser = host[:i], host[i+1:], true
	}
	if strings.HasPrefix(host, "[") || strings.Count(host, ":") < 2 || !isAddress(host) {
		if i := outside(host, ':'); i >= 0 {
			host, rest, hasRest = host[:i], host[i+1:], true
		}
	}
	return user, host, rest, hasUser, hasRest
}

// outside returns the position of the first sep that is not within brackets, or -1.
func outside(text string, sep byte) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '[':
			depth++
		case ']':
			depth--
		case sep:
			if depth <= 0 {
				return i
			}
		}
	}
	return -1
}

// number reads a whole number from 1 to most.
func number(what, text string, most int) (int, *fault) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most || strconv.Itoa(n) != text {
		hint := "write a whole number from 1 to " + strconv.Itoa(most)
		if err == nil && n == 0 {
			hint += ", or leave the host out"
		}
		return 0, faultf(hint, "%s is %s", what, quote(text))
	}
	return n, nil
}
