package ssh

import (
	"fmt"
	"io"
)

// localError means that the program cannot be read on this side.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }

// pieceSize is how much of a program is sent before the host confirms that it has read it.
// sshd keeps what the script has not read in a buffer, which it moves with every write. At
// 2 MiB, which is the most that SSH lets be under way, moving takes more processor time than
// the rest of the installation.
const pieceSize = 512 << 10

// tookPiece is the line with which a host confirms a piece.
const tookPiece = reportMark + "0 took\n"

// send writes the program in a form, after a line with its size. took receives a value for each
// piece that the host has read, and is closed when the host reads no more. In that case, send
// returns no error, because the script says why.
func (i *installation) send(to io.Writer, f form, took <-chan struct{}) error {
	from, size, err := i.program.open(f)
	if err != nil {
		return &localError{err}
	}
	defer from.Close()
	if _, err := fmt.Fprintf(to, "%d\n", size); err != nil {
		return err
	}
	buffer := make([]byte, pieceSize)
	for piece := 0; ; piece++ {
		n, err := io.ReadFull(from, buffer)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return &localError{err}
		}
		if piece > 0 && n > 0 {
			if _, more := <-took; !more {
				return nil
			}
		}
		if _, writeErr := to.Write(buffer[:n]); writeErr != nil || err != nil {
			return writeErr
		}
	}
}
