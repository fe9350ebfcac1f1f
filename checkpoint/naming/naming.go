// Package naming finds out what the names of checkpoints say: the step, the rank and shard numbers, and whether a
// checkpoint is temporary or of an earlier save.
package naming

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// re returns a regular expression that is compiled when it is first used. Most of gangrun's processes use none,
// and must start fast.
func re(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var (
	stamp   = re(`(19|20)\d\d-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])([T_-]?[0-2]\d[-:.]?[0-5]\d([-:.]?[0-5]\d)?)?`)
	shardOf = re(`(?i)\d+[-_]?of[-_]?(\d+)`)
	// shardWord matches the number of a rank, a shard or the like.
	shardWord = re(`(?i)((?:^|[^a-z])(?:` + shardWords + `)s?[=_.-]?)(\d+)`)
	// shardMore also matches the ranks of context and expert parallelism. In a name without another rank, "ep" is an epoch
	// and "cp" a checkpoint.
	shardMore = re(`(?i)((?:^|[^a-z])(?:` + shardWords + `|cp|ep)s?[=_.-]?)(\d+)`)
	version   = re(`-v\d+$`) // which Lightning adds if a name is taken
	suffix    = re(`\.(?:[A-Za-z]+|h5|hdf5|pt2|bz2)$`)
	stepWord  = re(`(?i)(?:step|iter|iteration|update)s?[=_-]?(\d+)`)
	stepNext  = re(`(?i)(?:step|iter|iteration|update)s?[=_-]?$`)
	epoch     = re(`(?i)epochs?[=_-]?(\d+)`)
	integer   = re(`\d+`)
)

const shardWords = `(?:mp|tp|pp|dp|cp|ep|local|global)?_?rank|shard|part|slice|proc|process|worker|node|host|local|gpu|device|replica|world_?size|tp|pp|dp`

// ranks returns the expression for the rank and shard numbers in name.
func ranks(name string) *regexp.Regexp {
	if shardWord().MatchString(name) {
		return shardMore()
	}
	return shardWord()
}

// undated returns name without the dates and times in it. A number is a date if it has exactly the digits of a date, or of
// a date and a time, and is not directly after "step" or a similar word.
func undated(name string) string {
	var b strings.Builder
	for {
		at := stamp().FindStringIndex(name)
		if at == nil {
			return b.String() + name
		}
		start, end := at[0], at[1]
		if digit(name, start-1) || digit(name, end) || name[start+4] != '-' && stepNext().MatchString(name[:start]) {
			for end = start; digit(name, end); end++ {
			}
			b.WriteString(name[:end])
		} else {
			b.WriteString(name[:start] + " ")
		}
		name = name[end:]
	}
}

// digit reports whether name has a digit at the place at.
func digit(name string, at int) bool {
	return at >= 0 && at < len(name) && name[at] >= '0' && name[at] <= '9'
}

// Step returns the step in a checkpoint's name, or -1 if the name has none. The step is the number after "step"
// or a similar word. Without such a word, it is the number after "epoch", and otherwise the last whole number.
// Step ignores extensions, dates, and rank and shard numbers.
func Step(name string) int64 {
	for suffix().MatchString(name) {
		name = suffix().ReplaceAllString(name, "")
	}
	name = version().ReplaceAllString(undated(name), "")
	name = shardOf().ReplaceAllString(name, " ")
	name = ranks(name).ReplaceAllString(name, "$1 ")
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

// Shard finds the rank and shard numbers in name. numbers has these numbers, and set is name with "*" in place of
// each of them. total is how many shards there are, such as 8 for "1-of-8". It is 0 if name does not tell. ok is
// false if no rank or shard number occurs in name.
func Shard(name string) (set string, numbers []int64, total int64, ok bool) {
	set = shardOf().ReplaceAllStringFunc(name, func(found string) string {
		all := integer().FindAllString(found, -1)
		numbers, total = append(numbers, Number(all[0])), Number(all[1])
		return "*" + found[len(all[0]):]
	})
	rank := ranks(set)
	for _, found := range rank.FindAllStringSubmatch(set, -1) {
		numbers = append(numbers, Number(found[2]))
	}
	return rank.ReplaceAllString(set, "$1*"), numbers, total, len(numbers) > 0
}

// Number returns digits as a number, or -1 if the number is too large for a step.
func Number(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// unfinished matches the names that programs give to a file or directory until it is complete.
var unfinished = re(`(?i)^\.|^tmp[-_.]|~$|\.part$|_temp$` +
	`|\.(tmp|temp|partial|incomplete|tempstate\d+)([._-][0-9a-z_]+)*$|orbax-checkpoint-tmp`)

// Temporary reports whether name looks like a name that programs give to files and directories while they write them.
// Such a file may still be being written, or its writer may have died.
func Temporary(name string) bool { return unfinished().MatchString(name) }

// Hidden reports whether a file in a checkpoint's directory does not belong to the checkpoint: it is a hidden
// file that is not being written, or a copy that an editor or GROMACS has made. name is the name of the file.
func Hidden(name string) bool {
	return strings.HasSuffix(name, "~") || copied().MatchString(name) || strings.HasPrefix(name, ".") && !Temporary(strings.TrimLeft(name, "."))
}

var (
	copied = re(`^#.+#$`)
	// earlier matches the names under which programs keep the previous checkpoint. Without the first group,
	// such a name is the name of the newer checkpoint.
	earlier = re(`(?i)([._-](?:prev|previous|old|bak|backup)(?:[._-]?(\d+))?)(?:\.[a-z]\w*)?$`)
)

// Predecessor reports whether name is the name of a checkpoint of an earlier save, such as "state_prev.cpt" or
// "a.restart.bak-2". original is then the name under which that checkpoint was written, such as "state.cpt" or
// "a.restart". ago is how many saves ago it was written; it is 1 if name does not tell, and -1 if the number in name
// is too large.
func Predecessor(name string) (original string, ago int64, ok bool) {
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

// Pattern returns name with "#" in place of each number. Corresponding files of two checkpoints of one job have the
// same pattern. If name is the name of an earlier save, Pattern uses the name that Predecessor returns instead of
// name.
func Pattern(name string) string {
	if of, _, ok := Predecessor(name); ok {
		name = of
	}
	return integer().ReplaceAllString(name, "#")
}
