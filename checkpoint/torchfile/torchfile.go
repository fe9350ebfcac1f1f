// Package torchfile reads what torch.save writes beside archives: pickles that refer to storages, and
// the older format.
package torchfile

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/finite"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/pickle"
)

// elementSizes are the bytes of an element by the class of its storage.
var elementSizes = map[string]int64{
	"DoubleStorage": 8, "FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2,
	"LongStorage": 8, "IntStorage": 4, "ShortStorage": 2, "CharStorage": 1, "ByteStorage": 1, "BoolStorage": 1,
	"ComplexDoubleStorage": 16, "ComplexFloatStorage": 8,
	"QInt8Storage": 1, "QInt32Storage": 4, "QUInt8Storage": 1, "QUInt4x2Storage": 1, "QUInt2x4Storage": 1,
	"UntypedStorage": 1,
}

// Storage is what a pickle says of one storage.
type Storage struct {
	Class   string // as in "FloatStorage"
	Element int64  // bytes of an element, 0 if the class is unknown
	Count   int64  // elements
	// Tensor is the name of the first tensor in it, as in "model.0.weight"; if no name was
	// found, it is empty.
	Tensor string
}

// Kind returns the kind of the numbers in the storage.
func (s *Storage) Kind() finite.Kind {
	k, _ := finite.KindOf(s.Class)
	return k
}

// Object is what the pickle of a file says.
type Object struct {
	// Root is the pickled object, as pickle.Builder builds it. A storage or tensor is a *Storage.
	Root any
	// Storages are the storages by their keys.
	Storages map[string]*Storage
	// Options are the numbers of the program's own arguments (argparse.Namespace) that were asked for.
	Options map[string]int64
}

// ReadObject reads one pickle. It keeps the options of those names. It runs nothing that is in it.
// The error is pickle.ErrTooBig if the pickle is too big to be followed.
func ReadObject(r *bufio.Reader, options ...string) (*Object, error) {
	o := &Object{Storages: map[string]*Storage{}, Options: map[string]int64{}}
	b := &pickle.Builder{
		Persist: func(id any) (any, error) { return o.add(id), nil },
		Called:  called,
		Built: func(class pickle.Global, state *pickle.Dict) error {
			if class == "argparse Namespace" {
				for _, name := range options {
					if n, ok := state.Get(name).(int64); ok {
						o.Options[name] = n
					}
				}
			}
			return nil
		},
	}
	if err := pickle.Scan(r, b); err != nil {
		return nil, err
	}
	o.Root = b.Result()
	named := 0
	name(o.Root, "", 0, &named)
	return o, nil
}

// check returns an error if a storage is of a class whose size is not known.
func (o *Object) check() error {
	for _, s := range o.Storages {
		if s.Element == 0 || s.Count < 0 {
			return flaw.New("a storage of its object is of the unknown class %q", flaw.Short(s.Class))
		}
	}
	return nil
}

// add notes the persistent ID of a storage: a tuple of the word "storage", its class, its key,
// its device, its number of elements and, for a part of another storage, which.
func (o *Object) add(id any) any {
	t, ok := id.(pickle.Tuple)
	if !ok || len(t) < 5 || t[0] != "storage" {
		return nil // the source of a module, say
	}
	class, _ := t[1].(pickle.Global)
	key, ok2 := t[2].(string)
	count, ok3 := t[4].(int64)
	if !ok2 || !ok3 {
		count = -1
	}
	_, name, _ := strings.Cut(string(class), " ")
	if known, ok := o.Storages[key]; ok {
		return known
	}
	s := &Storage{Class: name, Element: elementSizes[name], Count: count}
	o.Storages[key] = s
	return s
}

// called returns what the functions make that torch.save's pickles call: a tensor is its storage, an
// OrderedDict a dict, a parameter its tensor.
func called(function pickle.Global, args pickle.Tuple) any {
	switch {
	case function == "collections OrderedDict":
		return &pickle.Dict{}
	case strings.HasPrefix(string(function), "torch._utils _rebuild_") && len(args) > 0:
		if s, ok := args[0].(*Storage); ok {
			return s
		}
	}
	return nil
}

// Limits of a search for the names of tensors.
const (
	maxNamed = 1 << 20
	maxDeep  = 16
)

// name gives storages the names of the tensors in a value.
func name(v any, at string, depth int, named *int) {
	if *named++; *named > maxNamed || depth > maxDeep {
		return
	}
	within := func(key any) string {
		part := "?" // a tuple, which may be of any size
		switch key := key.(type) {
		case string:
			part = flaw.Short(key)
		case int, int64:
			part = fmt.Sprint(key)
		}
		if at == "" {
			return part
		}
		return at + "." + part
	}
	switch v := v.(type) {
	case *Storage:
		if v != nil && v.Tensor == "" {
			v.Tensor = at
		}
	case *pickle.Dict:
		for key, item := range v.All() {
			name(item, within(key), depth+1, named)
		}
	case *pickle.List:
		for i, item := range v.Items {
			name(item, within(i), depth+1, named)
		}
	case pickle.Tuple:
		for i, item := range v {
			name(item, within(i), depth+1, named)
		}
	}
}
