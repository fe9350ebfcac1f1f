package roster

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// columns says which columns of a table of processes have the rank, the process and the host, or -1. all is the number
// of columns.
type columns struct{ rank, pid, host, all int }

// column maps the names of the columns of such a table to their meaning.
var column = map[string]string{"rank": "rank", "task": "rank", "proc": "rank", "taskid": "rank", "procid": "rank", "pid": "pid", "process": "pid", "host": "host", "node": "host", "hostname": "host", "nodename": "host", "nodelist": "host"}

// cells splits a row of a table into its cells.
func cells(t string) []string {
	return strings.FieldsFunc(t, func(r rune) bool { return strings.ContainsRune(" \t,;|#", r) })
}

// head reads the names of the columns. ok is false if the line is not the head of a table of ranks.
func head(t string) (c columns, ok bool) {
	lower := strings.ToLower(t)
	if len(t) > 200 || !strings.Contains(lower, "rank") && !strings.Contains(lower, "task") && !strings.Contains(lower, "proc") {
		return c, false
	}
	c = columns{rank: -1, pid: -1, host: -1}
	names := cells(lower)
	for i, n := range names {
		switch column[n] {
		case "rank":
			c.rank = i
		case "pid":
			c.pid = i
		case "host":
			c.host = i
		}
	}
	c.all = len(names)
	return c, c.rank >= 0 && (c.pid >= 0 || c.host >= 0)
}

// tables reads the tables that have a column for the rank and one for the process or the host.
func (c *Census) tables(text []string) {
	var table columns
	open := false
	for _, t := range text {
		if h, ok := head(t); ok {
			table, open = h, true
			continue
		}
		if !open || strings.Trim(t, " -=+|") == "" {
			continue
		}
		row := cells(t)
		if open = len(row) == table.all && digitsOnly(row[table.rank]); !open {
			continue
		}
		rank := logtext.Number(row[table.rank])
		if table.pid >= 0 && digitsOnly(row[table.pid]) {
			c.process(logtext.Number(row[table.pid]), rank)
		}
		if table.host >= 0 && !digitsOnly(row[table.host]) {
			c.lives(row[table.host], rank)
		}
	}
}

// hostLine matches a line of a list of ranks and their hosts.
var hostLine = textmatch.New(`(?i)^\W{0,3}(?:rank|task|proc)?[ =:#]{0,2}(\d{1,5})(?: is)?(?: on| at| ?[-=]+>| ?=|:|,)? +(?:host[ =:])?([A-Za-z][\w.-]{0,60})$`)

// named reads lists of ranks and their hosts. A host counts only if one of several logs is named after it.
func (c *Census) named(logs []Log) {
	files := map[string]bool{}
	for _, l := range logs {
		if len(l.Lines) > 0 && len(logs) > 1 {
			base := l.Lines[0].File[strings.LastIndexByte(l.Lines[0].File, '/')+1:]
			base, _, _ = strings.Cut(base, ".")
			files[base] = true
		}
	}
	for _, l := range logs {
		for _, t := range l.Text {
			if len(t) > 100 || len(files) == 0 {
				continue
			}
			if m := hostLine.FindStringSubmatch(t); m != nil && files[m[2]] {
				c.lives(m[2], logtext.Number(m[1]))
			}
		}
	}
}

// several matches a rank and its process in a line that lists such pairs.
var several = textmatch.New(`(?i)\b(?:rank|task|proc|worker|member)[ =:#]{0,2}(\d{1,5})[ =:(]{1,2}(?:is )?pid[ =:]{0,2}(\d{2,8})\b|[ ,;](\d{1,5})[=:](?:pid)?(\d{3,8})\b`)

// pairs reads a line that lists several ranks and their processes.
func (c *Census) pairs(t string) {
	if !strings.Contains(t, "pid") && !strings.Contains(t, "PID") || strings.Contains(t, "ocal") {
		return
	}
	for n, rest := 0, t; n < longestList; n++ {
		at := several.FindStringIndex(rest)
		if at == nil {
			return
		}
		m := several.FindStringSubmatch(rest)
		if rest = rest[at[1]:]; n > 0 || several.MatchString(rest) {
			c.process(logtext.Number(m[2]+m[4]), logtext.Number(m[1]+m[3]))
		}
	}
}

// digitsOnly reports whether a cell may be the number of a rank or of a process.
func digitsOnly(t string) bool { return t != "" && len(t) <= 8 && strings.Trim(t, "0123456789") == "" }
