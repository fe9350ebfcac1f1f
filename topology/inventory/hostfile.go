package inventory

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/suggest"
)

// Hostfile reads a hostfile of Open MPI or of MPICH, a plain list, or a list with a line for each slot. The Kind of the
// result says which of these it is. Open MPI writes slots as slots=4, MPICH as :4; a file with both is an error. If the
// name of a host is repeated in a plain list, the file counts as a list with a line for each slot. name is the name of
// the file for errors.
func Hostfile(name string, text []byte) (List, error) {
	c, hint, err := hostfile(name, text)
	if err != nil {
		return List{}, err
	}
	return c.done(hint)
}

// Line is one line of a hostfile.
type Line struct {
	Host  string
	User  string // login name; empty if the line states none
	Slots int    // 0 if the line states none
}

// HostfileLines reads a hostfile as Hostfile does, and returns its lines one by one. It is for callers that
// need the order of repeated hosts.
func HostfileLines(name string, text []byte) ([]Line, error) {
	c, hint, err := hostfile(name, text)
	if err != nil {
		return nil, err
	}
	if _, err := c.done(hint); err != nil {
		return nil, err
	}
	return c.stated, nil
}

// hostfile reads a hostfile. The caller prints hint if the file names no host.
func hostfile(name string, text []byte) (c *collector, hint string, err error) {
	text, err = clean(name, text, MaxSize)
	if err != nil {
		return nil, "", err
	}
	kind, err := hostfileKind(name, text)
	switch {
	case err != nil:
		return nil, "", err
	case kind == OpenMPI:
		return openMPI(name, text), "write a host a line, as in h1 slots=4", nil
	case kind == MPICH:
		return mpich(name, text), "write a host a line, as in h1:4", nil
	}
	return plain(name, text), "write a host a line", nil
}

// pair is a word KEY=VALUE of a hostfile. If the word has no =, the pair has only the key.
type pair struct{ key, value string }

// joinEquals joins words with blanks, except around a =.
func joinEquals(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 && w[0] != '=' && !strings.HasSuffix(words[i-1], "=") {
			b.WriteByte(' ')
		}
		b.WriteString(w)
	}
	return b.String()
}

// hostLines calls each for every line, with the host and the further words.
func hostLines(text []byte, each func(line int, host string, words []pair)) {
	lines(text, func(line int, words []string) {
		for i, w := range words { // Open MPI's other form of comments
			if strings.HasPrefix(w, "//") {
				words = words[:i]
				break
			}
		}
		if len(words) == 0 {
			return
		}
		// Open MPI allows blanks around the =.
		rest := words[1:]
		if slices.ContainsFunc(rest, func(w string) bool { return w[0] == '=' || w[len(w)-1] == '=' }) {
			rest = strings.Fields(joinEquals(rest))
		}
		pairs := make([]pair, 0, len(rest))
		for _, w := range rest {
			key, value, _ := strings.Cut(w, "=")
			pairs = append(pairs, pair{key, value})
		}
		each(line, words[0], pairs)
	})
}

// These are the keys in the lines of hostfiles. user is a key of hydra. Open MPI writes username.
var (
	slotKeys    = []string{"slots", "cpu", "count"}
	mostKeys    = []string{"max_slots", "max-slots", "slots_max", "slots-max", "max_cpu", "max-cpu", "cpu_max", "cpu-max", "max_count", "max-count", "count_max", "count-max"}
	nameKeys    = []string{"username", "user_name", "user-name"}
	openMPIKeys = slices.Concat(slotKeys, mostKeys, nameKeys)
	mpichKeys   = []string{"user", "binding", "ifname", "interface"}
	fileKeys    = slices.Concat(openMPIKeys, mpichKeys)
)

// sign is the first word in a hostfile that shows the file's kind.
type sign struct {
	line int
	text string
}

// hostfileKind returns the kind of a hostfile. It returns Plain if no line shows the kind.
func hostfileKind(name string, text []byte) (Kind, error) {
	var open, hydra, weak, other sign
	see := func(s *sign, line int, text string) {
		if s.line == 0 {
			*s = sign{line, text}
		}
	}
	var hint string
	hostLines(text, func(line int, host string, words []pair) {
		_, _, _, hasUser, hasRest := apart(host)
		switch {
		case host == "hosts:" || host == "---" || host == "-" || host == "hosts" && len(words) > 0 && strings.HasPrefix(words[0].key, ":"):
			see(&other, line, host)
			hint = "a YAML inventory is given with --inventory"
		case host == "rank" && len(words) > 1 && words[len(words)-1].key == "slot":
			see(&other, line, host)
			hint = "this looks like a rankfile; a hostfile has a host a line, as in h1 slots=4"
		case hasRest:
			see(&hydra, line, host)
		case hasUser:
			see(&weak, line, host)
		}
		for _, w := range words {
			if slices.Contains(mpichKeys, w.key) {
				see(&hydra, line, w.key+"=")
			} else if slices.Contains(openMPIKeys, w.key) {
				see(&open, line, w.key+"=")
			}
		}
	})
	switch {
	case other.line > 0:
		return None, one(name, other.line, faultf(hint, "%s begins no line of a hostfile", quote(other.text)))
	case open.line > 0 && hydra.line > 0:
		late, early := open, hydra
		lateIs, earlyIs := "Open MPI", "MPICH"
		if open.line < hydra.line {
			late, early, lateIs, earlyIs = hydra, open, "MPICH", "Open MPI"
		}
		return None, one(name, late.line, faultf("write all lines in one form: h1 slots=4, or h1:4",
			"%s is written as for %s, but line %d has %s as for %s", quote(late.text), lateIs, early.line, quote(early.text), earlyIs))
	case hydra.line > 0:
		return MPICH, nil
	case open.line > 0 || weak.line > 0:
		return OpenMPI, nil
	}
	return Plain, nil
}

// unknown returns the fault of a word that is in no kind of hostfile.
func unknown(w pair) *fault {
	if near := suggest.DidYouMean(w.key, fileKeys); near != "" {
		return faultf("", "unknown word %s%s", quote(w.key), near)
	}
	return faultf("write h1, h1 slots=4 or h1:4, one host a line; remarks stand behind a #", "unknown word %s", quote(w.key))
}
