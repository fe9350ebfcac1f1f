package ssh

import "strings"

// match says whether a Match line applies. A condition that needs something
// run or looked up on this machine never does, and a note says so where it
// would have decided.
func (o *options) match(name string, at option) (bool, error) {
	words := at.args
	result, unable := true, ""
	for len(words) > 0 {
		word, value, valued := strings.Cut(words[0], "=") // of the condition only: a pattern may hold one
		word, words = strings.ToLower(word), words[1:]
		word, negated := strings.CutPrefix(word, "!")
		holds := false
		switch word {
		case "all":
			holds = true
		case "canonical":
		case "final":
			o.wanted = true
			holds = o.final
		default:
			patterns, ok := value, value != ""
			if !ok {
				if patterns, words, ok = argument(words, valued); !ok {
					return false, at.fail("give it a pattern", "Match %s has no argument", word)
				}
			}
			switch word {
			case "host":
				host := name
				if o.first("hostname").value() != "" {
					host = o.host()
				}
				holds = matchList(strings.ToLower(host), strings.ToLower(patterns))
			case "originalhost":
				holds = matchList(strings.ToLower(o.target.host), strings.ToLower(patterns))
			case "user":
				holds = matchList(o.user(), patterns)
			case "localuser":
				holds = matchList(o.config.User, patterns)
			case "exec", "localnetwork", "tagged", "command", "version", "sessiontype":
				unable = word
				continue
			default:
				return false, at.fail("see ssh_config(5)", "Match knows no %q", word)
			}
		}
		if holds == negated {
			result = false
		}
	}
	if result && unable != "" {
		o.note("%s:%d: Match %s is something that gangrun cannot judge: what follows it is left out", at.file, at.line, unable)
		return false, nil
	}
	return result, nil
}

// argument takes the argument of a condition off the words behind it, which may stand
// behind one "=" unless that has been seen.
func argument(words []string, seen bool) (first string, rest []string, ok bool) {
	if len(words) > 0 && !seen {
		if after, cut := strings.CutPrefix(words[0], "="); cut {
			if after != "" {
				return after, words[1:], true
			}
			words = words[1:]
		}
	}
	if len(words) == 0 {
		return "", nil, false
	}
	return words[0], words[1:], true
}

// matchHost is the rule of a Host line: one pattern matches and no negated one.
func matchHost(name string, patterns []string) bool {
	found := false
	for _, p := range patterns {
		p, negated := strings.CutPrefix(p, "!")
		if !matchPattern(name, p) {
			continue
		}
		if negated {
			return false
		}
		found = true
	}
	return found
}

// matchList is the same rule for a list with commas.
func matchList(s, list string) bool { return matchHost(s, strings.Split(list, ",")) }

// matchPattern matches all of s: * is any number of characters, ? is one.
func matchPattern(s, pattern string) bool {
	star, from := -1, 0
	i, j := 0, 0
	for i < len(s) {
		switch {
		case j < len(pattern) && pattern[j] == '*':
			star, from = j, i
			j++
		case j < len(pattern) && (pattern[j] == '?' || pattern[j] == s[i]):
			i++
			j++
		case star >= 0:
			from++
			i, j = from, star+1
		default:
			return false
		}
	}
	for j < len(pattern) && pattern[j] == '*' {
		j++
	}
	return j == len(pattern)
}
