package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/pattern"
)

// Limits on a matrix. They are larger than for any machine.
const (
	maxColumns = 512
	maxNVLinks = 255 // between two devices; the largest GPUs so far have 18
)

var (
	// underline matches how nvidia-smi highlights the header on a terminal. In output that was saved from a
	// pipe, the escape character may be missing.
	underline = pattern.New(`\x1b?\[[0-9;]*m`)
	nvlinks   = pattern.New(`^NV[1-9][0-9]*$`)
	gpuName   = pattern.New(`^GPU(0|[1-9][0-9]{0,4})$`)
	nicName   = pattern.New(`^[A-Za-z][A-Za-z0-9_.-]*$`)
	cpuList   = pattern.New(`^[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*$`)
	legend    = pattern.New(`^\s*(NIC[0-9]+)\s*:\s*(\S+)\s*$`)
)

// links has the words of the matrix for links other than NVLinks. Drivers before 384 print SOC for SYS.
var links = map[string]job.Link{
	"PSB": job.LinkPSB, "PIX": job.LinkPIX, "PXB": job.LinkPXB, "PHB": job.LinkPHB,
	"NODE": job.LinkNODE, "SYS": job.LinkSYS, "SOC": job.LinkSYS,
	"N/A": "", "-": "", "?": "", "ERR!": "",
}

// TopoError reports where the output of "nvidia-smi topo -m" is malformed.
type TopoError struct {
	Line, Column int // from 1; the column counts bytes
	Text         string
}

func (e *TopoError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Text)
}

// ParseTopo parses the output of "nvidia-smi topo -m", from any driver since 2016. It returns the GPUs, named
// GPU0, GPU1 and so on in the order of the columns, the link between each pair of GPUs, and the NICs. If the
// output has a legend, the NICs have the names of the legend. The error is a *TopoError.
func ParseTopo(text string) ([]job.Device, [][]job.Link, []job.NIC, error) {
	m, err := readMatrix(text)
	if err != nil {
		return nil, nil, nil, err
	}
	return m.result()
}

// word is a word of a line. at is its first byte, counted from 1.
type word struct {
	text string
	at   int
}

// matrix has what was read of the output so far.
type matrix struct {
	header   int // line of the header
	columns  []string
	affinity []string // the columns after the matrix: CPU, NUMA, GPU NUMA ID
	rows     map[string]row
	names    map[string]string // of the NIC legend
}

type row struct {
	line       int
	cells      []word
	cpus, numa string
}

func readMatrix(text string) (*matrix, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	m := &matrix{rows: map[string]row{}, names: map[string]string{}}
	inLegend := false
	last := 0
	for n, line := range strings.Split(text, "\n") {
		line = underline().ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat(" ", len(s)) })
		ws := words(line)
		if len(ws) == 0 {
			continue
		}
		last = n + 1
		switch {
		case m.columns == nil:
			if !gpuName().MatchString(ws[0].text) {
				continue
			}
			if err := m.readHeader(n+1, ws); err != nil {
				return nil, err
			}
		case inLegend && gpuName().MatchString(ws[0].text):
			return nil, &TopoError{n + 1, ws[0].at, "a second matrix: one text is one host"}
		case inLegend:
			if found := legend().FindStringSubmatch(line); found != nil {
				m.names[found[1]] = found[2]
			}
		case strings.EqualFold(ws[0].text, "Legend:") || len(ws) > 1 && ws[0].text == "NIC" && ws[1].text == "Legend:":
			inLegend = true
		case slices.Contains(m.columns, ws[0].text):
			if err := m.readRow(n+1, ws, len(line)); err != nil {
				return nil, err
			}
		case gpuName().MatchString(ws[0].text) || !m.complete():
			return nil, &TopoError{n + 1, ws[0].at, fmt.Sprintf("%q is no column of the header in line %d", ws[0].text, m.header)}
		}
	}
	if m.columns == nil {
		return nil, &TopoError{max(last, 1), 1, "no header that begins with a GPU, as in GPU0: save the output of \"nvidia-smi topo -m\""}
	}
	for _, c := range m.columns {
		if _, ok := m.rows[c]; !ok && gpuName().MatchString(c) {
			return nil, &TopoError{last, 1, fmt.Sprintf("the row of %s is missing: the text ends too early", c)}
		}
	}
	return m, nil
}

// readHeader reads the columns of GPUs, then those of NICs, and then those of affinities.
func (m *matrix) readHeader(n int, ws []word) error {
	m.header = n
	for i := 0; i < len(ws); i++ {
		w := ws[i]
		rest := func(want ...string) bool {
			for k, text := range want {
				if i+k >= len(ws) || ws[i+k].text != text {
					return false
				}
			}
			i += len(want) - 1
			return true
		}
		switch {
		case rest("CPU", "Affinity"):
			m.affinity = append(m.affinity, "CPU")
		case rest("NUMA", "Affinity"):
			m.affinity = append(m.affinity, "NUMA")
		case rest("GPU", "NUMA", "ID"):
			m.affinity = append(m.affinity, "memory")
		case m.affinity != nil:
			return &TopoError{n, w.at, fmt.Sprintf("%q is no column that may follow %s Affinity", w.text, m.affinity[0])}
		case isLink(w.text) || nvlinks().MatchString(w.text) || w.text == "X" || !nicName().MatchString(w.text) || w.text == "GPU" || w.text == "CPU" || w.text == "NUMA":
			return &TopoError{n, w.at, fmt.Sprintf("%q is no name of a column: is the header line whole?", w.text)}
		case slices.Contains(m.columns, w.text):
			return &TopoError{n, w.at, fmt.Sprintf("column %q is there twice", w.text)}
		case gpuName().MatchString(w.text) && len(m.columns) > 0 && !gpuName().MatchString(m.columns[len(m.columns)-1]):
			return &TopoError{n, w.at, fmt.Sprintf("%q follows a NIC", w.text)}
		case len(m.columns) == maxColumns:
			return &TopoError{n, w.at, fmt.Sprintf("more than %d columns", maxColumns)}
		default:
			m.columns = append(m.columns, w.text)
		}
	}
	return nil
}

func (m *matrix) readRow(n int, ws []word, end int) error {
	name := ws[0]
	if earlier, ok := m.rows[name.text]; ok {
		return &TopoError{n, name.at, fmt.Sprintf("row %q is there twice, in line %d before", name.text, earlier.line)}
	}
	r := row{line: n}
	for i, column := range m.columns {
		if i+1 >= len(ws) {
			return &TopoError{n, end + 1, fmt.Sprintf("row %q ends before column %q: %d of %d cells", name.text, column, i, len(m.columns))}
		}
		w := ws[i+1]
		switch self := column == name.text; {
		case self != (w.text == "X"):
			what := "how " + name.text + " and " + column + " are connected"
			if self {
				what = "X"
			}
			return &TopoError{n, w.at, fmt.Sprintf("%q where %s should be", w.text, what)}
		case nvlinks().MatchString(w.text) && !isLink(w.text):
			return &TopoError{n, w.at, fmt.Sprintf("%q is no link: two devices are connected by at most %d NVLinks", w.text, maxNVLinks)}
		case !self && !isLink(w.text):
			return &TopoError{n, w.at, fmt.Sprintf("%q is no link: want NV and a number, PIX, PXB, PHB, NODE, SYS, SOC or N/A", w.text)}
		}
		r.cells = append(r.cells, w)
	}
	if err := m.readAffinity(&r, n, ws[1+len(m.columns):]); err != nil {
		return err
	}
	m.rows[name.text] = r
	return nil
}

// readAffinity reads the words after the cells of a row. The columns are not aligned, so an empty cell leaves
// no trace. If a cell is empty, only a list of several CPUs can be recognised with certainty.
func (m *matrix) readAffinity(r *row, n int, ws []word) error {
	if len(ws) > len(m.affinity) {
		return &TopoError{n, ws[len(m.affinity)].at, fmt.Sprintf("%q is beyond the last column", ws[len(m.affinity)].text)}
	}
	whole := len(ws) == len(m.affinity)
	for i, w := range ws {
		if w.text == "N/A" {
			continue
		}
		if !isCPUList(w.text) {
			return &TopoError{n, w.at, fmt.Sprintf("%q is no list of numbers, as in 0-15,32", w.text)}
		}
		switch {
		case m.affinity[i] == "CPU" && (whole || strings.ContainsAny(w.text, "-,")):
			r.cpus = w.text
		case m.affinity[i] == "NUMA" && whole:
			r.numa = w.text
		}
	}
	return nil
}

// isCPUList reports whether text is a list of CPUs whose ranges are in ascending order.
func isCPUList(text string) bool {
	if !cpuList().MatchString(text) {
		return false
	}
	for part := range strings.SplitSeq(text, ",") {
		if from, to, ok := strings.Cut(part, "-"); ok {
			a, _ := strconv.Atoi(from)
			b, _ := strconv.Atoi(to)
			if a > b {
				return false
			}
		}
	}
	return true
}

func (m *matrix) complete() bool { return len(m.rows) == len(m.columns) }

// result checks that both rows of each pair have the same link, and returns the devices, links and NICs.
func (m *matrix) result() ([]job.Device, [][]job.Link, []job.NIC, error) {
	var devices []job.Device
	var nics []job.NIC
	for _, c := range m.columns {
		r := m.rows[c]
		numa := r.numa
		if end := strings.IndexAny(numa, ",-"); end >= 0 {
			numa = numa[:end] // the first of several, which has the CPUs if the memory of GPUs is a node, too
		}
		if found := gpuName().FindStringSubmatch(c); found != nil {
			index, _ := strconv.Atoi(found[1])
			devices = append(devices, job.Device{UUID: c, Index: index, CPUs: r.cpus, NUMA: numa})
		} else {
			nics = append(nics, job.NIC{Name: cmp.Or(m.names[c], c), NUMA: numa, Links: make([]job.Link, len(devices))})
		}
	}
	matrix := make([][]job.Link, len(devices))
	for i := range devices {
		matrix[i] = make([]job.Link, len(devices))
	}
	for a, from := range m.columns[:len(devices)] {
		for b, to := range m.columns {
			link, err := m.pair(a, b, from, to)
			if err != nil {
				return nil, nil, nil, err
			}
			if b < len(devices) {
				matrix[a][b] = link
			} else {
				nics[b-len(devices)].Links[a] = link
			}
		}
	}
	return devices, matrix, nics, nil
}

// pair returns the link between columns a and b. The rows of NICs may be missing.
func (m *matrix) pair(a, b int, from, to string) (job.Link, error) {
	cell := m.rows[from].cells[b]
	link := link(cell.text)
	back, ok := m.rows[to]
	if !ok {
		return link, nil
	}
	other := back.cells[a]
	switch reverse := linkOf(other); {
	case link == "":
		return reverse, nil
	case reverse != "" && reverse != link:
		return "", &TopoError{back.line, other.at, fmt.Sprintf("%s and %s are connected by %q here and by %q in line %d", to, from, other.text, cell.text, m.rows[from].line)}
	}
	return link, nil
}

func linkOf(w word) job.Link { return link(w.text) }

// link returns the link that a cell shows, or "".
func link(text string) job.Link {
	if isNVLinks(text) {
		return job.Link(text)
	}
	return links[text]
}

func isLink(text string) bool {
	_, ok := links[text]
	return ok || isNVLinks(text)
}

// isNVLinks reports whether text is NV and a number that topology.NVLinks accepts.
func isNVLinks(text string) bool {
	if !nvlinks().MatchString(text) {
		return false
	}
	n, err := strconv.Atoi(text[len("NV"):])
	return err == nil && n <= maxNVLinks
}

// words splits a line at white space.
func words(line string) []word {
	var ws []word
	for i := 0; i < len(line); {
		if isSpace(line[i]) {
			i++
			continue
		}
		from := i
		for i < len(line) && !isSpace(line[i]) {
			i++
		}
		ws = append(ws, word{line[from:i], from + 1})
	}
	return ws
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\v' || b == '\f' }
