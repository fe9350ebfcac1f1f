package metrics

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// wandb reads the file of an offline run of Weights & Biases. The file has a header of seven bytes and then
// blocks of 32 KiB in LevelDB's log format, but with plain CRC32s. The records are messages
// wandb_internal.Record.
type wandb struct {
	rest    []byte
	read    int64 // bytes that were read
	message []byte
	large   bool // the present message is larger than maxRecord and ignored
	open    bool // a part of the present message was read
}

// wandbHeader is the beginning of a file: ident, magic number and version.
var wandbHeader = []byte{':', 'W', '&', 'B', 0xE1, 0xBE, 0}

const (
	wandbBlock = 32 << 10
	wandbHead  = 7 // checksum, length and type of a part of a record
)

// Types of the parts of a record.
const (
	partFull = 1 + iota
	partFirst
	partMiddle
	partLast
)

func (w *wandb) add(piece []byte, emit func(Point)) error {
	w.rest = append(w.rest, piece...)
	used := 0
	take := func(n int) { used, w.read = used+n, w.read+int64(n) }
	defer func() { w.rest = append(w.rest[:0], w.rest[used:]...) }()
	if w.read == 0 {
		if len(w.rest) < len(wandbHeader) {
			return nil
		}
		if string(w.rest[:len(wandbHeader)]) != string(wandbHeader) {
			return &DamagedError{0, "this version of W&B's format is not known"}
		}
		take(len(wandbHeader))
	}
	for {
		left := wandbBlock - int(w.read%wandbBlock)
		at := w.rest[used:]
		if left < wandbHead { // the end of a block, which has no part
			if len(at) < left {
				return nil
			}
			take(left)
			continue
		}
		if len(at) < wandbHead {
			return nil
		}
		sum, length, kind := binary.LittleEndian.Uint32(at), int(binary.LittleEndian.Uint16(at[4:])), at[6]
		if kind == 0 && length == 0 && sum == 0 { // the file system has allocated this block, but the data was not written
			return nil
		}
		if length > left-wandbHead {
			return &DamagedError{w.read, "a record is longer than its block"}
		}
		if len(at) < wandbHead+length {
			return nil
		}
		if crc32.ChecksumIEEE(at[6:wandbHead+length]) != sum {
			return &DamagedError{w.read, "the checksum of a record is wrong"}
		}
		if !w.part(kind, at[wandbHead:wandbHead+length], emit) {
			return &DamagedError{w.read, "the parts of a record are in disorder"}
		}
		take(wandbHead + length)
	}
}

// part adds a part of a message.
func (w *wandb) part(kind byte, data []byte, emit func(Point)) bool {
	starts, ends := kind == partFull || kind == partFirst, kind == partFull || kind == partLast
	if kind > partLast || starts == w.open {
		return false
	}
	if starts {
		w.message, w.large = w.message[:0], false
	}
	if w.large = w.large || len(w.message)+len(data) > maxRecord; !w.large {
		w.message = append(w.message, data...)
	}
	w.open = !ends
	if ends && !w.large {
		history(w.message, emit)
	}
	return true
}

// history reads a Record. Its field 2 is a HistoryRecord, with items (1) and a step (2). An item has a key
// (1) or nested_key (2), and value_json (16).
func history(message []byte, emit func(Point)) {
	fields(message, func(num protowire.Number, _ uint64, record []byte) {
		if num != 2 || record == nil {
			return
		}
		of := map[string]float64{}
		fields(record, func(num protowire.Number, _ uint64, b []byte) {
			switch num {
			case 1:
				var names []string
				var value []byte
				fields(b, func(num protowire.Number, _ uint64, b []byte) {
					switch num {
					case 1, 2:
						names = append(names, string(b))
					case 16:
						value = b
					}
				})
				if v, ok := jsonNumber(value); ok {
					of[strings.Join(names, "/")] = v
				}
			case 2:
				fields(b, func(num protowire.Number, v uint64, _ []byte) {
					if num == 1 {
						of["_step"] = float64(int64(v))
					}
				})
			}
		})
		if step, ok := of["_step"]; ok {
			keyed(of, int64(step), emit)
		}
	})
}

// jsonNumber reads a number in the form that Python's json module writes.
func jsonNumber(text []byte) (float64, bool) {
	switch s := strings.Trim(string(text), `"`); s {
	case "NaN", "nan":
		return math.NaN(), true
	case "Infinity", "inf", "-Infinity", "-inf":
		return math.Inf(map[bool]int{true: -1, false: 1}[s[0] == '-']), true
	}
	if !json.Valid(text) {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil
}
