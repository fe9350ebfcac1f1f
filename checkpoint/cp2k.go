package checkpoint

import (
	"bufio"
	"bytes"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// checkCP2K checks that every section of a restart file is closed. A restart file of CP2K is an input file.
func checkCP2K(f *file, _ string) error {
	lines := bufio.NewScanner(f.From(0))
	open := 0
	for lines.Scan() {
		switch line := bytes.TrimLeft(lines.Bytes(), " \t"); {
		case len(line) >= 4 && bytes.EqualFold(line[:4], []byte("&END")):
			open--
		case bytes.HasPrefix(line, []byte("&")):
			open++
		}
	}
	switch err := lines.Err(); {
	case err == bufio.ErrTooLong:
		return flaw.Flaw("it has a line that is too long for an input file")
	case err != nil:
		return err
	case open > 0:
		return flaw.Flaw("truncated: it ends within a section")
	}
	return nil
}
