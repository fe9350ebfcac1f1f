package pickle

import (
	"iter"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/flaw"
)

// Builder is a Machine that builds the objects of a pickle without running any code. It supports what torch's
// own pickles need: names, whole numbers, truth values, tuples, lists and dicts. Other objects become nil. Step
// returns ErrTooBig for a pickle with too many values to be kept in memory.
type Builder struct {
	stack []any
	marks []int
	memo  map[int64]any
	made  int
	// The Builder calls these functions; each may be nil. Persist returns the object of a persistent ID. Built
	// is called for each object whose state the pickle sets. Called is called when the pickle calls a function
	// or class; it returns the result of that call, or nil if the result does not matter.
	Persist func(id any) (any, error)
	Built   func(class Global, state *Dict) error
	Called  func(function Global, args Tuple) any
}

// maxValues is the maximum number of values that a pickle may build. The pickle of a checkpoint of a thousand
// ranks with a thousand tensors each has about ten million.
const maxValues = 16 << 20

// ErrTooBig is the error for a pickle that has too many values to be kept in memory.
const ErrTooBig = flaw.Flaw("its pickle is too big to be followed")

const errPickle = flaw.Flaw("its pickle is damaged")

type (
	// Global is the name of a class or function, as "module name".
	Global string
	// Tuple is a Python tuple.
	Tuple []any
	// List is a Python list.
	List struct{ Items []any }
	// Dict is a Python dict.
	Dict struct {
		// pairs has the keys and values in turn.
		pairs []any
	}

	long   string // the bytes of a whole number of more than 64 bits
	object struct{ class Global }
)

// Get returns the value of a key that is a string. It returns nil if the dict does not have the key.
func (d *Dict) Get(key string) any {
	for i := 0; i+1 < len(d.pairs); i += 2 {
		if d.pairs[i] == key {
			return d.pairs[i+1]
		}
	}
	return nil
}

// All returns the keys and values in turn.
func (d *Dict) All() iter.Seq2[any, any] {
	return func(yield func(key, value any) bool) {
		for i := 0; i+1 < len(d.pairs); i += 2 {
			if !yield(d.pairs[i], d.pairs[i+1]) {
				return
			}
		}
	}
}

// Result returns the object that the pickle represents. It must be called after the whole pickle was read.
func (u *Builder) Result() any {
	if len(u.stack) == 0 {
		return nil
	}
	return u.stack[len(u.stack)-1]
}

// Step implements Machine.
func (u *Builder) Step(op byte, arg []byte) error {
	switch op {
	case opMark:
		u.marks = append(u.marks, len(u.stack))
		return u.count()
	case opStop, opProto, opFrame, opReadOnlyBuffer:
		return nil
	case opPop:
		if n := len(u.marks); n > 0 && u.marks[n-1] == len(u.stack) {
			u.marks = u.marks[:n-1]
			return nil
		}
		_, err := u.pop(1)
		return err
	case opPopMark:
		_, err := u.popMark()
		return err
	case opDup, opMemoize, opPut, opBinPut, opLongBinPut:
		top, err := u.top()
		if err != nil {
			return err
		}
		if op == opDup {
			return u.push(top)
		}
		key := int64(len(u.memo))
		if op != opMemoize {
			key = number(op, arg)
		}
		if u.memo == nil {
			u.memo = map[int64]any{}
		}
		u.memo[key] = top
		return u.count()
	case opGet, opBinGet, opLongBinGet:
		v, ok := u.memo[number(op, arg)]
		if !ok {
			return errPickle
		}
		return u.push(v)
	case opBinString, opShortBinString, opBinUnicode, opShortUnicode, opUnicode8:
		return u.push(string(arg))
	case opString, opUnicode:
		return u.push(strings.Trim(strings.TrimSuffix(string(arg), "\n"), `'"`))
	case opInt, opLong, opBinInt, opBinInt1, opBinInt2:
		return u.push(number(op, arg))
	case opLong1, opLong4:
		if len(arg) > 8 {
			return u.push(long(arg))
		}
		return u.push(number(op, arg))
	case opEmptyTuple:
		return u.push(Tuple{})
	case opEmptyList:
		return u.push(&List{})
	case opEmptyDict:
		return u.push(&Dict{})
	case opGlobal:
		module, name, _ := strings.Cut(strings.TrimSuffix(string(arg), "\n"), "\n")
		return u.push(Global(module + " " + name))
	case opPersID:
		return u.persistent(strings.TrimSuffix(string(arg), "\n"))
	default:
		return u.combine(op, arg)
	}
}

// combine handles the opcodes that make a value from other values.
func (u *Builder) combine(op byte, arg []byte) error {
	switch op {
	case opTuple1, opTuple2, opTuple3:
		v, err := u.pop(int(op-opTuple1) + 1)
		return u.pushIf(err, Tuple(v))
	case opTuple:
		v, err := u.popMark()
		return u.pushIf(err, Tuple(v))
	case opList:
		v, err := u.popMark()
		return u.pushIf(err, &List{v})
	case opDict:
		v, err := u.popMark()
		return u.pushIf(err, &Dict{v})
	case opFrozenSet:
		_, err := u.popMark()
		return u.pushIf(err, nil)
	case opAppend, opAppends, opSetItem, opSetItems, opAddItems:
		return u.fill(op)
	case opStackGlobal:
		v, err := u.pop(2)
		if err != nil {
			return err
		}
		module, ok1 := v[0].(string)
		name, ok2 := v[1].(string)
		if !ok1 || !ok2 {
			return errPickle
		}
		return u.push(Global(module + " " + name))
	case opReduce, opNewObj:
		v, err := u.pop(2)
		return u.pushObject(err, v)
	case opNewObjEx:
		v, err := u.pop(3)
		return u.pushObject(err, v)
	case opObj:
		v, err := u.popMark()
		return u.pushObject(err, v)
	case opInst:
		_, err := u.popMark()
		return u.pushIf(err, nil)
	case opBuild:
		v, err := u.pop(1)
		if err != nil {
			return err
		}
		top, err := u.top()
		if err != nil {
			return err
		}
		o, ok1 := top.(*object)
		state, ok2 := v[0].(*Dict)
		if !ok1 || !ok2 || u.Built == nil {
			return nil
		}
		err = u.Built(o.class, state)
		state.pairs = nil
		return err
	case opBinPersID:
		v, err := u.pop(1)
		if err != nil {
			return err
		}
		return u.persistent(v[0])
	case opTrue, opFalse:
		return u.push(op == opTrue)
	default: // bytes, floats, None, extensions, buffers
		return u.push(nil)
	}
}

// fill adds values to a list, dict or set.
func (u *Builder) fill(op byte) error {
	var v []any
	var err error
	switch op {
	case opAppend:
		v, err = u.pop(1)
	case opSetItem:
		v, err = u.pop(2)
	default:
		v, err = u.popMark()
	}
	if err != nil {
		return err
	}
	top, err := u.top()
	if err != nil {
		return err
	}
	switch c := top.(type) {
	case *List:
		c.Items = append(c.Items, v...)
	case *Dict:
		c.pairs = append(c.pairs, v...)
	}
	return nil
}

func (u *Builder) persistent(id any) error {
	if u.Persist == nil {
		return u.push(nil)
	}
	v, err := u.Persist(id)
	return u.pushIf(err, v)
}

func (u *Builder) count() error {
	if u.made++; u.made > maxValues {
		return ErrTooBig
	}
	return nil
}

func (u *Builder) push(v any) error {
	u.stack = append(u.stack, v)
	return u.count()
}

func (u *Builder) pushIf(err error, v any) error {
	if err != nil {
		return err
	}
	return u.push(v)
}

// pushObject pushes an object of the class v[0], or the result of Called.
func (u *Builder) pushObject(err error, v []any) error {
	if err != nil {
		return err
	}
	if len(v) == 0 {
		return errPickle
	}
	class, _ := v[0].(Global)
	if args, ok := v[len(v)-1].(Tuple); ok && u.Called != nil {
		if result := u.Called(class, args); result != nil {
			return u.push(result)
		}
	}
	return u.push(&object{class})
}

func (u *Builder) top() (any, error) {
	if len(u.stack) == 0 {
		return nil, errPickle
	}
	return u.stack[len(u.stack)-1], nil
}

// pop returns a copy of the last n values, above the last mark.
func (u *Builder) pop(n int) ([]any, error) {
	from := len(u.stack) - n
	if from < 0 || len(u.marks) > 0 && from < u.marks[len(u.marks)-1] {
		return nil, errPickle
	}
	v := append([]any(nil), u.stack[from:]...)
	u.stack = u.stack[:from]
	return v, nil
}

// popMark removes the last mark, and the values above it. It returns a copy of these values.
func (u *Builder) popMark() ([]any, error) {
	if len(u.marks) == 0 {
		return nil, errPickle
	}
	from := u.marks[len(u.marks)-1]
	u.marks = u.marks[:len(u.marks)-1]
	return u.pop(len(u.stack) - from)
}

// number returns the argument of op as a whole number. It returns 0 if the argument is a text that is no
// number.
func number(op byte, arg []byte) int64 {
	switch op {
	case opInt, opLong, opGet, opPut:
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(arg)), "L"), 10, 64)
		return n
	}
	var n uint64
	for i, b := range arg {
		n |= uint64(b) << (8 * i)
	}
	if signed := op == opBinInt || op == opLong1 || op == opLong4; signed && len(arg) > 0 && arg[len(arg)-1] >= 0x80 && len(arg) < 8 {
		n |= ^uint64(0) << (8 * len(arg))
	}
	return int64(n)
}
