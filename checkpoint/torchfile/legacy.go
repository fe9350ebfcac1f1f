package torchfile

import (
	"bytes"
	"encoding/binary"

	"github.com/gangrun/gangrun/checkpoint/blob"
	"github.com/gangrun/gangrun/checkpoint/finite"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/pickle"
)

// LegacyMagic is the pickled number at the beginning of files in torch.save's older format (MAGIC_NUMBER in
// torch/serialization.py).
const LegacyMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"

// IsLegacy reports whether head is the beginning of a file in torch.save's older format, with any pickle
// protocol.
func IsLegacy(head []byte) bool {
	return bytes.Contains(head[:min(len(head), 32)], []byte(LegacyMagic))
}

// CheckLegacy checks a file in torch.save's older format. Such a file has five pickles: the magic number, the
// version, the system, the object, and the keys of the storages. After them, it has, for each key, the number
// of elements and the elements.
func CheckLegacy(f *blob.File) error {
	storages := map[string]*Storage{}
	var keys []any
	big := false // the object has too many values, so its storages are not known
	s := f.From(0)
	for part := range 5 {
		o, err := ReadObject(s.Reader)
		if part == 3 && err == pickle.ErrTooBig {
			if err := pickle.Scan(s.Reader, nil); err != nil { // from where ReadObject has stopped
				return err
			}
			big = true
			continue
		}
		if err == nil {
			err = o.check()
		}
		if err != nil {
			return err
		}
		for key, st := range o.Storages {
			storages[key] = st
		}
		if l, ok := o.Root.(*pickle.List); part == 4 && ok {
			keys = l.Items
		} else if part == 4 {
			return flaw.New("its list of storages is none")
		}
	}
	if big {
		f.Seen.NoteDoubt("its object has so many values that its storages were not looked at", false)
		return nil
	}
	if len(keys) != len(storages) {
		return flaw.New("it lists %d storages, but its object has %d", len(keys), len(storages))
	}
	off := s.Pos()
	for _, key := range keys {
		name, _ := key.(string)
		st, ok := storages[name]
		if !ok {
			return flaw.New("its storage %q belongs to nothing", flaw.Short(name))
		}
		head, err := f.Bytes(off, 8)
		if err != nil {
			return flaw.Truncated("storage "+name, err)
		}
		n := int64(binary.LittleEndian.Uint64(head))
		if n != st.Count {
			return flaw.New("storage %s has %d elements, but its object says %d", name, n, st.Count)
		}
		off += 8
		if n > (f.Size-off)/st.Element {
			return flaw.New("truncated: it ends within storage %s", name)
		}
		if f.Seen.IsDeep() {
			if err := st.scanAt(f, off, n*st.Element, name); err != nil {
				return err
			}
		}
		off += n * st.Element
	}
	return nil
}

// scanAt reads the numbers of a storage, and records those that are not finite.
func (s *Storage) scanAt(f *blob.File, off, n int64, key string) error {
	scanner := finite.NewScanner(s.Kind(), false)
	if scanner == nil {
		if s.Kind() == finite.Unknown {
			f.Seen.NoteNumbers("", blob.Numbers{Skipped: 1})
		}
		return nil
	}
	if err := f.CopyTo(scanner, off, n); err != nil {
		return err
	}
	f.Seen.NoteNumbers(s.Name(key), scanner.Found())
	return nil
}

// Name returns the name of the first tensor in the storage. If that name is not known, Name returns a name that
// is made from key.
func (s *Storage) Name(key string) string {
	if s.Tensor != "" {
		return s.Tensor
	}
	return "storage " + key
}
