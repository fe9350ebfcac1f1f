package lease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
)

// magic is the beginning of every record. It includes the version of the format.
const magic = "gangrun-lease 1 "

// maxRecord is the maximum size of a record, in bytes. A ticket with MaxDevices names of maxName bytes fits
// into it.
const maxRecord = 128 << 10

// errTruncated is the error for a record that was written or copied only in part, or that has changed since.
var errTruncated = errors.New("truncated record")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode returns v as a record. The record has a line with the length and the CRC-32C of the JSON, then the
// JSON, and then a line feed. The length and the CRC do not include the line feed.
func encode(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	data := fmt.Appendf(nil, "%s%d %08x\n", magic, len(body), crc32.Checksum(body, castagnoli))
	data = append(append(data, body...), '\n')
	if len(data) > maxRecord {
		return nil, fmt.Errorf("a record of %d bytes is too long; at most %d are possible", len(data), maxRecord)
	}
	return data, nil
}

// decode reads a record into v. It returns errTruncated if the record is incomplete. data
// must not be empty.
func decode(data []byte, v any) error {
	line, rest, ok := bytes.Cut(data, []byte("\n"))
	head, isRecord := bytes.CutPrefix(line, []byte(magic))
	length, sum, both := bytes.Cut(head, []byte(" "))
	if !ok || !isRecord || !both {
		return fmt.Errorf("%w: no header", errTruncated)
	}
	n, err := strconv.ParseUint(string(length), 10, 31)
	if err != nil || len(sum) != 8 {
		return fmt.Errorf("%w: bad header", errTruncated)
	}
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if err != nil {
		return fmt.Errorf("%w: bad header", errTruncated)
	}
	if uint64(len(rest)) != n+1 || rest[n] != '\n' {
		return fmt.Errorf("%w: %d bytes, not %d", errTruncated, len(rest), n+1)
	}
	if crc32.Checksum(rest[:n], castagnoli) != uint32(want) {
		return fmt.Errorf("%w: bad checksum", errTruncated)
	}
	if err := json.Unmarshal(rest[:n], v); err != nil {
		return fmt.Errorf("%w: %w", errTruncated, err)
	}
	return nil
}
