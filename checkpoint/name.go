package checkpoint

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/layout"
)

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
	return stepNumber(digits)
}

// shard returns the name without the numbers of ranks and shards, and these numbers. of is how many shards the
// name says that there are; 0 if it does not. It is not ok if the name has no such number.
func shard(name string) (set string, numbers []int64, of int64, ok bool) {
	set = shardOf().ReplaceAllStringFunc(name, func(found string) string {
		all := integer().FindAllString(found, -1)
		numbers, of = append(numbers, stepNumber(all[0])), stepNumber(all[1])
		return "*" + found[len(all[0]):]
	})
	for _, found := range shardWord().FindAllStringSubmatch(set, -1) {
		numbers = append(numbers, stepNumber(found[2]))
	}
	return shardWord().ReplaceAllString(set, "$1*"), numbers, of, len(numbers) > 0
}

// stepNumber returns the number that digits are, -1 when it is too long for a step.
func stepNumber(digits string) int64 {
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

// temporary reports whether a name is one of a file or directory that is still
// being written, or was when its writer died.
func temporary(name string) bool { return unfinished().MatchString(name) }

// hidden reports whether a name says nothing of the checkpoint it lies in: a
// hidden file that is not being written, or an editor's or GROMACS's copy.
func hidden(name string) bool {
	return strings.HasSuffix(name, "~") || copied().MatchString(name) || strings.HasPrefix(name, ".") && !temporary(strings.TrimLeft(name, "."))
}

var (
	copied = re(`^#.+#$`)
	// earlier matches names under which programs keep the checkpoint before the
	// one whose name is the same without the first group.
	earlier = re(`(?i)([._-](?:prev|previous|old|bak|backup)(?:[._-]?(\d+))?)(?:\.[a-z]\w*)?$`)
)

// predecessor returns the name of the checkpoint that one of that name was
// before, and how many saves ago at least: "state.cpt" of "state_prev.cpt",
// "a.restart" of "a.restart.bak-2".
func predecessor(name string) (of string, ago int64, ok bool) {
	at := earlier().FindStringSubmatchIndex(name)
	if at == nil || at[2] == 0 {
		return "", 0, false
	}
	ago = 1
	if at[4] >= 0 {
		ago = stepNumber(name[at[4]:at[5]])
	}
	return name[:at[2]] + name[at[3]:], ago, true
}

// unrelated are names of what lies beside checkpoints and is none.
var (
	unrelated = re(`(?i)^(events\.out\.tfevents|readme|license|slurm-|log\.)`)
	pointers  = []string{"latest", "checkpoint", layout.Tracker, "last_checkpoint", "latest_step", "latest_universal"}
	beside    = []string{".log", ".lock", ".md", ".rst", ".py", ".sh", ".yaml", ".yml", ".toml", ".ini", ".cfg",
		".csv", ".tsv", ".html", ".png", ".svg", ".jpg", ".pdf", ".out", ".err", ".prof", ".pbtxt"}
	marker = re(`(?i)^_?(success|done|complete|completed|commit|committed|finished)([._-]success)?(\.txt)?$|^commit_success\.txt$`)
)

// maxPointer bounds a text file that only names the newest checkpoint, in bytes.
const maxPointer = 4 << 10

// bookkeeping reports whether a file of that name and size is no checkpoint,
// whatever it holds: a log, a script, a table of metrics, a pointer to the
// newest, a mark that all is there.
func bookkeeping(name string, size int64) bool {
	return unrelated().MatchString(name) || marker().MatchString(name) ||
		slices.Contains(beside, strings.ToLower(filepath.Ext(name))) ||
		size <= maxPointer && slices.Contains(pointers, name) || besides(name)
}

// pattern is a name with its numbers left out, which the files of two
// checkpoints of one job have in common.
func pattern(name string) string {
	if of, _, ok := predecessor(name); ok {
		name = of
	}
	return integer().ReplaceAllString(name, "#")
}
