package checkpoint

import (
	"io"

	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/pickle"
)

// checkPickles checks a file that begins with a pickle. A program may have written several pickles to the file,
// and after the last pickle other data. plain is true if there is other data, because gangrun cannot check it.
// plain is also true for a pickle of joblib. gangrun checks only that such a file ends with the opcode STOP.
func checkPickles(f *file) (plain bool, err error) {
	for off := int64(0); off < f.Size; {
		s := f.From(off)
		if off > 0 {
			if next, err := s.Peek(2); err != nil && err != io.EOF {
				return false, err
			} else if !pickle.Begins(next) && string(next) != "\x80" {
				return true, nil
			}
		}
		err := pickle.Scan(s.Reader, pickle.Joblib{})
		if err == pickle.ErrJoblib {
			last, err := f.Bytes(f.Size-1, 1)
			if err == nil && !pickle.Ends(last[0]) {
				err = flaw.New("truncated: its pickle has no end")
			}
			return true, err
		}
		if err != nil {
			return false, err
		}
		off = s.Pos()
	}
	return false, nil
}
