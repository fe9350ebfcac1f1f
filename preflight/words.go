package preflight

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/text"
)

// mostNames is the maximum number of names that a sentence lists. It counts the other names.
const mostNames = 8

func quote(s string) string { return strconv.Quote(s) }

// names lists names for a sentence, as in "h1, h2 and h3".
func names(list []string) string {
	if over := len(list) - mostNames; over > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:mostNames], ", "), over)
	}
	return text.And(list)
}

// where says on which of the hosts of a gang something is true, as the end of a sentence.
func where(hosts []string, all int) string {
	if len(hosts) == all {
		return fmt.Sprintf(" (on all %d hosts)", all)
	}
	return fmt.Sprintf(" (on %s: %d of %d hosts)", names(hosts), len(hosts), all)
}
