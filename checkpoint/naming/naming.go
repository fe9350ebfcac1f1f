// Package naming reads the names of checkpoints: their steps, the numbers of ranks and shards, whether they are temporary
// or of an earlier save.
package naming

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// re returns a regular expression that is compiled when it is first used: most
// of gangrun's processes use none and must start fast.
func re(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var (
	stamps  = re(`(19|20)\d\d-?[01]\d-?[0-3]\d([T_-][0-2]\d[-:.]?[0-5]\d([-:.]?[0-5]\d)?)?`)
	shardOf = re(`(?i)\d+[-_]?of[-_]?(\d+)`)
	// shardWord matches the number of a rank, a shard or the like.
	shardWord = re(`(?i)((?:^|[^a-z])(?:(?:mp|tp|pp|dp|cp|ep|local|global)?_?rank|shard|part|slice|proc|process|worker|node|host|local|gpu|device|replica|` +
		`world_?size|tp|pp|dp|cp|ep)s?[=_.-]?)(\d+)`)
	version  = re(`-v\d+$`) // Lightning's, for a name that is taken
	suffix   = re(`\.(?:[A-Za-z]+|h5|hdf5|pt2|bz2)$`)
	stepWord = re(`(?i)(?:step|iter|iteration|update)s?[=_-]?(\d+)`)
	epoch    = re(`(?i)epochs?[=_-]?(\d+)`)
	integer  = re(`\d+`)
)

// Step returns the step in a checkpoint's name, or -1. That is the number after "step" or a
// similar word, otherwise after "epoch", otherwise the last whole number. Extensions, dates
// and the numbers of ranks and shards are ignored.
func Step(name string) int64 {
	for suffix().MatchString(name) {
		name = suffix().ReplaceAllString(name, "")
	}
	name = stamps().ReplaceAllString(name, " ")
	name = version().ReplaceAllString(name, "")
	name = shardWord().ReplaceAllString(shardOf().ReplaceAllString(name, " "), "$1 ")
	digits := ""
	for _, word := range []func() *regexp.Regexp{stepWord, epoch} {
		if all := word().FindAllStringSubmatch(name, -1); len(all) > 0 {
			digits = all[len(all)-1][1]
			break
		}
	}
	if digits == "" {
		all := integer().FindAllString(name, -1)
		if len(all) == 0 {
			return -1
		}
		digits = all[len(all)-1]
	}
	return Number(digits)
}

// Shard returns the name without the numbers of ranks and shards, and these numbers. of is how many shards the
// name says that there are; 0 if it does not. It is not ok if the name has no such number.
func Shard(name string) (set string, numbers []int64, of int64, ok bool) {
	set = shardOf().ReplaceAllStringFunc(name, func(found string) string {
		all := integer().FindAllString(found, -1)
		numbers, of = append(numbers, Number(all[0])), Number(all[1])
		return "*" + found[len(all[0]):]
	})
	for _, found := range shardWord().FindAllStringSubmatch(set, -1) {
		numbers = append(numbers, Number(found[2]))
	}
	return shardWord().ReplaceAllString(set, "$1*"), numbers, of, len(numbers) > 0
}

// Number returns the number that digits are, -1 when it is too long for a step.
func Number(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// unfinished are the names under which programs write what they rename when it
// is whole.
var unfinished = re(`(?i)^\.|^tmp[-_.]|~$|\.part$|_temp$` +
	`|\.(tmp|temp|partial|incomplete|tempstate\d+)([._-][0-9a-z_]+)*$|orbax-checkpoint-tmp`)

// Temporary reports whether a name is one of a file or directory that is still
// being written, or was when its writer died.
func Temporary(name string) bool { return unfinished().MatchString(name) }

// Hidden reports whether a name says nothing of the checkpoint it lies in: a
// Hidden file that is not being written, or an editor's or GROMACS's copy.
func Hidden(name string) bool {
	return strings.HasSuffix(name, "~") || copied().MatchString(name) || strings.HasPrefix(name, ".") && !Temporary(strings.TrimLeft(name, "."))
}

var (
	copied = re(`^#.+#$`)
	// earlier matches names under which programs keep the checkpoint before the
	// one whose name is the same without the first group.
	earlier = re(`(?i)([._-](?:prev|previous|old|bak|backup)(?:[._-]?(\d+))?)(?:\.[a-z]\w*)?$`)
)

// Predecessor returns the name of the checkpoint that one of that name was
// before, and how many saves ago at least: "state.cpt" of "state_prev.cpt",
// "a.restart" of "a.restart.bak-2".
func Predecessor(name string) (of string, ago int64, ok bool) {
	at := earlier().FindStringSubmatchIndex(name)
	if at == nil || at[2] == 0 {
		return "", 0, false
	}
	ago = 1
	if at[4] >= 0 {
		ago = Number(name[at[4]:at[5]])
	}
	return name[:at[2]] + name[at[3]:], ago, true
}

// Pattern is a name with its numbers left out, which the files of two
// checkpoints of one job have in common.
func Pattern(name string) string {
	if of, _, ok := Predecessor(name); ok {
		name = of
	}
	return integer().ReplaceAllString(name, "#")
}
