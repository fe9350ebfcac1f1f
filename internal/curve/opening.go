package curve

import (
	"bytes"
	"strconv"

	"github.com/gangrun/gangrun/internal/job"
)

// opening reads the lines whose form is known by their beginning. opens must be true for the line.
func opening(line []byte) (job.Progress, bool) {
	line = bytes.TrimLeft(line, " ")
	if len(line) == 0 {
		return job.Progress{}, false
	}
	switch line[0] {
	case 'E': // NAMD: "ENERGY:     500  ..."; ABINIT: " ETOT  3  -8.5 ..."
		return after(line, "ENERGY: ", "ETOT ")
	case 'T': // NAMD: "TIMING: 500  CPU: ..."
		return after(line, "TIMING: ")
	case 'D', 'R', 'C': // VASP's electronic steps: "DAV:   3    -0.24E+00 ..."
		return after(line, "DAV: ", "RMM: ", "CG : ", "CGA: ")
	case 'S': // GADGET: "Sync-Point 5, Time: 0.0123"
		rest, ok := bytes.CutPrefix(line, []byte("Sync-Point "))
		at, _, comma := bytes.Cut(rest, []byte(","))
		if !ok || !comma {
			return job.Progress{}, false
		}
		return whole(at)
	case 's': // SIESTA: "scf:    3  -1234.5 ..."
		return after(line, "scf: ")
	case 'p', 'P': // "Progress: 45%"
		rest := line[1:]
		if !bytes.HasPrefix(rest, []byte("rogress")) {
			return job.Progress{}, false
		}
		return percent(bytes.TrimLeft(rest[len("rogress"):], ": ["))
	}
	return numbered(line)
}

// opens reports whether opening may know the form of a line. It only reads the first bytes.
func opens(line []byte) bool {
	i := 0
	for i < len(line) && line[i] == ' ' {
		i++
	}
	if i < len(line) && isDigit(line[i]) {
		return opensNumbered(line, i)
	}
	if i+3 >= len(line) {
		return false
	}
	switch c := line[i]; {
	case c == 'E':
		return line[i+1] == 'N' || line[i+1] == 'T'
	case c == 'T':
		return line[i+1] == 'I' && line[i+2] == 'M'
	case c == 'D', c == 'C', c == 'R', c == 's':
		return line[i+3] == ':' || line[i+2] == ':' || line[i+2] == ' '
	case c == 'S':
		return line[i+1] == 'y' && line[i+2] == 'n'
	case c == 'P', c == 'p':
		return line[i+1] == 'r' && line[i+2] == 'o' && line[i+3] == 'g'
	}
	return false
}

// opensNumbered reports whether numbered may know a line whose number begins at i. It rejects dates and
// times, with which most lines of logs begin.
func opensNumbered(line []byte, i int) bool {
	for i < len(line) && isDigit(line[i]) {
		i++
	}
	if i+1 >= len(line) {
		return i < len(line) && line[i] == '%'
	}
	next := line[i+1]
	switch line[i] {
	case '%', '.', 'e':
		return true
	case ' ':
		return next == '%' || next == 'F' || next == 'T' || next == 'S' || next == 'K'
	case ':':
		return next == ' ' || next == '\t'
	}
	return false
}

// summary reports whether a line begins like a line of Keras without a bar: "40/40 - 3s".
func summary(line []byte) bool {
	i := 0
	for i < len(line) && isDigit(line[i]) {
		i++
	}
	if i == 0 || i >= len(line) || line[i] != '/' {
		return false
	}
	for i++; i < len(line) && isDigit(line[i]); i++ {
	}
	return bytes.HasPrefix(line[i:], []byte(" - "))
}

// after reads a step that follows one of the heads. A number must follow the step.
func after(line []byte, heads ...string) (job.Progress, bool) {
	for _, head := range heads {
		rest, ok := bytes.CutPrefix(line, []byte(head))
		if !ok {
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) < 2 || fields[1][0] > '9' && string(fields[1]) != "CPU:" {
			return job.Progress{}, false
		}
		return whole(fields[0])
	}
	return job.Progress{}, false
}

// whole reads a step.
func whole(text []byte) (job.Progress, bool) {
	step, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || step < 0 || step > 1e15 {
		return job.Progress{}, false
	}
	return job.Progress{Step: step, Epoch: -1}, true
}

// percent reads a percentage such as "45%" or "45.2 %". Only "]", "done" or "complete" may follow it.
func percent(text []byte) (job.Progress, bool) {
	value, end, ok := number(text, 0)
	rest := bytes.TrimLeft(text[end:], " ")
	if !ok || value > 100 || len(rest) == 0 || rest[0] != '%' {
		return job.Progress{}, false
	}
	switch string(bytes.Trim(rest[1:], " ].!")) {
	case "", "done", "complete", "completed", "finished":
		return job.Progress{Step: int64(value), Total: 100, Epoch: -1}, true
	}
	return job.Progress{}, false
}

// numbered reads the lines that begin with a number.
func numbered(line []byte) (job.Progress, bool) {
	if p, ok := percent(line); ok {
		return p, true
	}
	end := 0
	for end < len(line) && isDigit(line[end]) {
		end++
	}
	p, ok := whole(line[:end])
	if !ok {
		return job.Progress{}, false
	}
	rest := line[end:]
	switch {
	case bytes.HasPrefix(rest, []byte(" F= ")) && bytes.Contains(rest, []byte(" E0= ")), // VASP's ionic steps
		bytes.HasPrefix(rest, []byte(" T= ")) && bytes.Contains(rest, []byte(" E= ")):
		p.Epoch, p.ByEpoch = p.Step, true
		return p, true
	case bytes.HasPrefix(rest, []byte(" TS dt ")), bytes.HasPrefix(rest, []byte(" SNES Function norm ")), // PETSc
		bytes.HasPrefix(rest, []byte(" KSP Residual norm ")), bytes.HasPrefix(rest, []byte(" KSP preconditioned resid norm ")):
		return p, true
	case bytes.HasPrefix(rest, []byte(":")) && bytes.HasPrefix(bytes.TrimLeft(rest[1:], " \t"), []byte("learn: ")): // CatBoost
		return p, true
	case bytes.HasPrefix(rest, []byte(": ")) && bytes.Contains(rest, []byte(" avg loss, ")): // Darknet
		if loss, _, ok := number(bytes.TrimLeft(rest[2:], " "), 0); ok {
			p.SetLoss(loss)
		}
		return p, true
	case bytes.HasPrefix(rest, []byte("epoch:train:")): // ESPnet: "1epoch:train:51-100batch: ..., loss=92.3"
		return espnet(p, rest[len("epoch:train:"):])
	}
	return job.Progress{}, false
}

// espnet reads the range of batches that follows the epoch, and the loss.
func espnet(p job.Progress, rest []byte) (job.Progress, bool) {
	batches, rest, ok := bytes.Cut(rest, []byte("batch:"))
	if _, last, found := bytes.Cut(batches, []byte("-")); found {
		batches = last
	}
	at, whole := whole(batches)
	if !ok || !whole {
		return job.Progress{}, false
	}
	p.Step, p.Epoch = at.Step, p.Step
	if _, value, ok := bytes.Cut(rest, []byte(" loss=")); ok {
		if loss, _, ok := number(value, 0); ok {
			p.SetLoss(loss)
		}
	}
	return p, true
}
