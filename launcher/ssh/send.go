package ssh

import (
	"fmt"
	"io"
)

// localError is the error if the program cannot be read on this machine.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }

// pieceSize is how many bytes of a program are sent before the host must confirm that it has read them. sshd keeps data
// that the script has not read in a buffer, and moves that data with every write. With pieces of 2 MiB, which is the
// most that SSH allows to be under way, moving the data would take more processor time than the rest of the
// installation.
const pieceSize = 512 << 10

// tookPiece is the line with which a host confirms a piece.
const tookPiece = reportMark + "0 took\n"

// send writes the program in a form, after a line with its size. took receives a value for each piece that the host has
// read. It is closed when the host reads no more. send then returns no error, because the script reports the reason.
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
