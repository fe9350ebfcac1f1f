package checkpoint

import (
	"bytes"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/pickle"
)

// torchMagic is the number that files of torch.save's older format begin with,
// as a pickle has it (MAGIC_NUMBER in torch/serialization.py).
const torchMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"

// legacy reports whether head begins like torch.save's older format, whatever
// the pickle protocol.
func legacy(head []byte) bool {
	return bytes.Contains(head[:min(len(head), 32)], []byte(torchMagic))
}

// elementSizes are the bytes of an element by the class of its storage.
var elementSizes = map[string]int64{
	"DoubleStorage": 8, "FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2,
	"LongStorage": 8, "IntStorage": 4, "ShortStorage": 2, "CharStorage": 1, "ByteStorage": 1, "BoolStorage": 1,
	"ComplexDoubleStorage": 16, "ComplexFloatStorage": 8,
	"QInt8Storage": 1, "QInt32Storage": 4, "QUInt8Storage": 1, "QUInt4x2Storage": 1, "QUInt2x4Storage": 1,
	"UntypedStorage": 1,
}

// storage is what the pickle of a legacy file says of one storage.
type storage struct{ element, count int64 }

// checkLegacy checks a file of torch.save's older format: five pickles (the
// magic number, the version, the system, the object, the keys of its
// storages), then for each key the number of its elements and their bytes.
func checkLegacy(f *file) error {
	storages := map[string]storage{}
	var keys []any
	s := f.from(0)
	for part := range 5 {
		u := &pickle.Builder{Persist: func(id any) error { return addStorage(storages, id) }}
		if err := pickle.Scan(s.Reader, u); err != nil {
			return err
		}
		if l, ok := u.Result().(*pickle.List); part == 4 && ok {
			keys = l.Items
		} else if part == 4 {
			return flaw.New("its list of storages is none")
		}
	}
	if len(keys) != len(storages) {
		return flaw.New("it lists %d storages, but its object has %d", len(keys), len(storages))
	}
	off := s.pos()
	for _, key := range keys {
		name, _ := key.(string)
		st, ok := storages[name]
		if !ok {
			return flaw.New("its storage %q belongs to nothing", flaw.Short(name))
		}
		head, err := f.bytes(off, 8)
		if err != nil {
			return flaw.Truncated("storage "+name, err)
		}
		n := int64(le.Uint64(head))
		if n != st.count {
			return flaw.New("storage %s has %d elements, but its object says %d", name, n, st.count)
		}
		off += 8
		if n > (f.size-off)/st.element {
			return flaw.New("truncated: it ends within storage %s", name)
		}
		off += n * st.element
	}
	return nil
}

// addStorage notes the persistent ID of a storage: a tuple of the word
// "storage", its class, its key, its device, its number of elements and, for a
// part of another storage, which.
func addStorage(all map[string]storage, id any) error {
	t, ok := id.(pickle.Tuple)
	if !ok || len(t) < 5 || t[0] != "storage" {
		return nil // the source of a module, say
	}
	class, ok1 := t[1].(pickle.Global)
	key, ok2 := t[2].(string)
	count, ok3 := t[4].(int64)
	_, name, _ := strings.Cut(string(class), " ")
	element := elementSizes[name]
	if !ok1 || !ok2 || !ok3 || count < 0 || element == 0 {
		return flaw.New("a storage of its object is of the unknown class %q", flaw.Short(string(class)))
	}
	if _, ok := all[key]; !ok {
		all[key] = storage{element, count}
	}
	return nil
}
