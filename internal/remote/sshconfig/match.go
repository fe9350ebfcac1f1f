package sshconfig

import "strings"

// match reports whether a Match line applies to the host. A condition that gangrun would need a command or other facts
// to check never holds. If all other conditions hold, match adds a note about that condition.
func (o *options) match(name string, at option) (bool, error) {
	words := at.args
	result, unsupported := true, ""
	for len(words) > 0 {
		word, value, valued := strings.Cut(words[0], "=") // the pattern may have another "="
		word, words = strings.ToLower(word), words[1:]
		word, negated := strings.CutPrefix(word, "!")
		holds := false
		switch word {
		case "all":
			holds = true
		case "canonical":
		case "final":
			o.again = true
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
				holds = MatchList(strings.ToLower(host), strings.ToLower(patterns))
			case "originalhost":
				holds = MatchList(strings.ToLower(o.asked.Name), strings.ToLower(patterns))
			case "user":
				holds = MatchList(o.user(), patterns)
			case "localuser":
				holds = MatchList(o.config.User, patterns)
			case "exec", "localnetwork", "tagged", "command", "version", "sessiontype":
				unsupported = word
				continue
			default:
				return false, at.fail("see ssh_config(5)", "Match knows no %q", word)
			}
		}
		if holds == negated {
			result = false
		}
	}
	if result && unsupported != "" {
		o.note("%s:%d: gangrun does not support Match %s: the lines below it are ignored", at.file, at.line, unsupported)
		return false, nil
	}
	return result, nil
}

// argument returns the first of the words that follow a condition, as its argument. One "=" may be before it, unless
// seen is true.
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

// matchHost reports whether a Host line applies. It applies if a pattern matches and no negated pattern does.
func matchHost(name string, patterns []string) bool {
	found := false
	for _, p := range patterns {
		p, negated := strings.CutPrefix(p, "!")
		if !MatchPattern(name, p) {
			continue
		}
		if negated {
			return false
		}
		found = true
	}
	return found
}

// MatchList reports whether s matches list, which has patterns separated by commas. s matches the list if it
// matches at least one pattern, and does not match the rest of any pattern that begins with "!".
func MatchList(s, list string) bool { return matchHost(s, strings.Split(list, ",")) }

// MatchPattern reports whether the whole of s matches a pattern. In the pattern, * stands for
// any number of characters, and ? for one character.
func MatchPattern(s, pattern string) bool {
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
