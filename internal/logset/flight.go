package logset

import (
	"bufio"
	"bytes"
	"io"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/flightrecord"
	"github.com/gangrun/gangrun/internal/job"
)

// maxDump limits the size of a dump of a flight recorder that is read, in bytes. A dump of 20,000 calls with their
// stacks has about 40 MB.
const maxDump = 128 << 20

// dumpRank matches the number of the rank at the end of the name of a dump.
var dumpRank = textmatch.New(`(\d{1,7})(?:\.(?:gz|bz2|zst))?$`)

// record returns a line of evidence with the contents of a dump of PyTorch's flight recorder. If in has something else,
// record returns no line. The reader that it returns has the same bytes as in.
func record(name string, o logtext.Origin, in io.Reader) (*job.Line, io.Reader) {
	buffered := bufio.NewReader(in)
	m := dumpRank.FindStringSubmatch(name)
	// A pickle of protocol 2 or later begins with an opcode that no text has, and the protocol.
	head, err := buffered.Peek(2)
	if m == nil || err != nil || head[0] != 0x80 || head[1] < 2 || head[1] > 5 {
		return nil, buffered
	}
	var read bytes.Buffer
	r, err := flightrecord.Parse(logtext.Number(m[1]), io.TeeReader(io.LimitReader(buffered, maxDump), &read))
	if err != nil {
		return nil, io.MultiReader(&read, buffered)
	}
	line := flightrecord.Line(r, o.Host, name)
	return &line, nil
}
