// Package fortran checks files of Fortran's sequential unformatted records.
package fortran

import (
	"encoding/binary"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// Check checks that every record of a Fortran file, up to the end of the file, has its length before and behind
// it. A negative length says that the record is continued. Several empty records in a row count as a flaw: they
// are zeros that a power loss has left.
func Check(f *blob.File) error {
	if f.Size == 0 {
		return flaw.Flaw("it is empty")
	}
	empty := 0 // records in a row
	for at := int64(0); at < f.Size; {
		head, err := f.Bytes(at, 4)
		if err != nil {
			return flaw.Truncated("the length of a record", err)
		}
		length := recordLength(head)
		tail, err := f.Bytes(at+4+length, 4)
		if err != nil {
			return flaw.Truncated("a record", err)
		}
		if recordLength(tail) != length {
			return flaw.New("the record at byte %d does not end as it begins", at)
		}
		if empty++; length > 0 {
			empty = 0
		} else if empty > 1 {
			return flaw.New("there are zeros instead of records from byte %d on", at-8)
		}
		at += length + 8
	}
	return nil
}

func recordLength(marker []byte) int64 {
	n := int64(int32(binary.LittleEndian.Uint32(marker)))
	return max(n, -n)
}
