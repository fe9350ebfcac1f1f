// Package pickle reads Python pickles without running anything.
package pickle

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// The opcodes of pickle protocols 0 to 5 (CPython's Lib/pickletools.py).
const (
	opMark, opStop, opPop, opPopMark, opDup               = '(', '.', '0', '1', '2'
	opFloat, opInt, opLong, opNone, opPersID              = 'F', 'I', 'L', 'N', 'P'
	opBinPersID, opReduce, opString, opUnicode            = 'Q', 'R', 'S', 'V'
	opAppend, opBuild, opGlobal, opDict, opEmptyDict      = 'a', 'b', 'c', 'd', '}'
	opAppends, opGet, opInst, opList, opEmptyList         = 'e', 'g', 'i', 'l', ']'
	opObj, opPut, opSetItem, opTuple, opEmptyTuple        = 'o', 'p', 's', 't', ')'
	opSetItems, opBinFloat, opBinInt, opBinInt1           = 'u', 'G', 'J', 'K'
	opBinInt2, opBinGet, opLongBinGet, opBinPut           = 'M', 'h', 'j', 'q'
	opLongBinPut, opBinString, opShortBinString           = 'r', 'T', 'U'
	opBinUnicode, opBinBytes, opShortBinBytes             = 'X', 'B', 'C'
	opProto, opNewObj, opExt1, opExt2, opExt4             = 0x80, 0x81, 0x82, 0x83, 0x84
	opTuple1, opTuple2, opTuple3, opTrue, opFalse         = 0x85, 0x86, 0x87, 0x88, 0x89
	opLong1, opLong4, opShortUnicode, opUnicode8          = 0x8a, 0x8b, 0x8c, 0x8d
	opBytes8, opEmptySet, opAddItems, opFrozenSet         = 0x8e, 0x8f, 0x90, 0x91
	opNewObjEx, opStackGlobal, opMemoize, opFrame         = 0x92, 0x93, 0x94, 0x95
	opByteArray8, opNextBuffer, opReadOnlyBuffer     byte = 0x96, 0x97, 0x98
)

// shape describes the argument of an opcode. The argument is a fixed number of bytes, or a number of lines, or
// a length of counted bytes that is followed by as many bytes as the length says.
type shape struct {
	known                 bool
	fixed, lines, counted uint8
}

var shapes = func() (all [256]shape) {
	set := func(s shape, ops ...byte) {
		s.known = true
		for _, op := range ops {
			all[op] = s
		}
	}
	set(shape{}, opMark, opStop, opPop, opPopMark, opDup, opNone, opBinPersID, opReduce, opAppend, opBuild, opDict, opEmptyDict,
		opAppends, opList, opEmptyList, opObj, opSetItem, opTuple, opEmptyTuple, opSetItems, opNewObj, opTuple1, opTuple2, opTuple3,
		opTrue, opFalse, opEmptySet, opAddItems, opFrozenSet, opNewObjEx, opStackGlobal, opMemoize, opNextBuffer, opReadOnlyBuffer)
	set(shape{fixed: 1}, opBinInt1, opBinGet, opBinPut, opProto, opExt1)
	set(shape{fixed: 2}, opBinInt2, opExt2)
	set(shape{fixed: 4}, opBinInt, opLongBinGet, opLongBinPut, opExt4)
	set(shape{fixed: 8}, opBinFloat, opFrame)
	set(shape{lines: 1}, opFloat, opInt, opLong, opString, opUnicode, opGet, opPut, opPersID)
	set(shape{lines: 2}, opGlobal, opInst)
	set(shape{counted: 1}, opShortBinString, opShortBinBytes, opShortUnicode, opLong1)
	set(shape{counted: 4}, opBinString, opBinBytes, opBinUnicode, opLong4)
	set(shape{counted: 8}, opUnicode8, opBytes8, opByteArray8)
	return all
}()

// maxKept is how many bytes of an opcode's argument are kept. Names and numbers are shorter. Longer texts and
// arrays are cut off.
const maxKept = 4 << 10

// maxLineLen is the maximum length of a line in an argument, for example of a whole number, in bytes.
const maxLineLen = 64 << 20

// Machine receives the opcodes of a pickle, one by one.
type Machine interface {
	// Step is called for each opcode. arg is the argument of the opcode, and is valid only during the call. A
	// long argument of variable length is cut off.
	Step(op byte, arg []byte) error
}

// Scan reads one pickle up to its opcode STOP. It calls m.Step for each opcode, unless m is nil.
func Scan(r *bufio.Reader, m Machine) error {
	var arg []byte
	for {
		op, err := r.ReadByte()
		if err != nil {
			return flaw.Truncated("its pickle", err)
		}
		if !shapes[op].known {
			return flaw.New("its pickle has the unknown opcode %#02x", op)
		}
		if arg, err = readArg(r, op, arg[:0]); err != nil {
			return flaw.Truncated("its pickle", err)
		}
		if m != nil {
			if err := m.Step(op, arg); err != nil {
				return err
			}
		}
		if op == opStop {
			return nil
		}
	}
}

func readArg(r *bufio.Reader, op byte, arg []byte) ([]byte, error) {
	s := shapes[op]
	n := int64(s.fixed)
	if s.counted > 0 {
		var l [8]byte
		if _, err := io.ReadFull(r, l[:s.counted]); err != nil {
			return nil, err
		}
		if n = int64(binary.LittleEndian.Uint64(l[:])); n < 0 || (op == opBinString || op == opLong4) && n > 1<<31-1 { // these lengths have a sign
			return nil, flaw.New("its pickle has an item of an impossible length")
		}
	}
	if n > 0 {
		kept := int(min(n, maxKept))
		arg = append(arg, make([]byte, kept)...)
		if _, err := io.ReadFull(r, arg); err != nil {
			return nil, err
		}
		if _, err := r.Discard(int(n) - kept); err != nil {
			return nil, err
		}
	}
	for range s.lines {
		length := 0
		for {
			piece, err := r.ReadSlice('\n')
			if length += len(piece); length > maxLineLen {
				return nil, flaw.New("its pickle has a line without end")
			}
			arg = append(arg, piece[:min(len(piece), max(0, maxKept-len(arg)))]...)
			if err == nil {
				break
			}
			if err != bufio.ErrBufferFull {
				return nil, err
			}
		}
	}
	return arg, nil
}

// joblib is the module of the classes in joblib's pickles.
const joblib = "joblib.numpy_pickle"

// ErrJoblib is the error with which the Machine Joblib ends the scan of a pickle of joblib. Such a
// pickle cannot be scanned, because the bytes of arrays lie between its opcodes.
const ErrJoblib = flaw.Flaw("joblib")

// Joblib is a Machine that returns ErrJoblib when a string of the pickle shows that joblib has written it.
type Joblib struct{}

// Step implements Machine.
func (Joblib) Step(op byte, arg []byte) error {
	switch op {
	case opGlobal, opShortUnicode, opBinUnicode:
		if bytes.HasPrefix(arg, []byte(joblib)) {
			return ErrJoblib
		}
	}
	return nil
}

// Begins reports whether head begins like a pickle of protocol 2 to 5. No text begins like that. Pickles of
// protocols 0 and 1 can be recognised only by the name of their file.
func Begins(head []byte) bool {
	return len(head) >= 2 && head[0] == opProto && head[1] >= 2 && head[1] <= 5
}

// Ends reports whether a pickle can end with the byte b.
func Ends(b byte) bool { return b == opStop }
