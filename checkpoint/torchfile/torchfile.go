// Package torchfile reads the pickles that torch.save writes, which refer to storages. It also reads files in
// the older format of torch.save.
package torchfile

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/finite"
	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/pickle"
)

// elementSizes has the bytes of an element for each class of storages.
var elementSizes = map[string]int64{
	"DoubleStorage": 8, "FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2,
	"LongStorage": 8, "IntStorage": 4, "ShortStorage": 2, "CharStorage": 1, "ByteStorage": 1, "BoolStorage": 1,
	"ComplexDoubleStorage": 16, "ComplexFloatStorage": 8,
	"QInt8Storage": 1, "QInt32Storage": 4, "QUInt8Storage": 1, "QUInt4x2Storage": 1, "QUInt2x4Storage": 1,
	"UntypedStorage": 1,
}

// Storage is a storage as a pickle describes it.
type Storage struct {
	Class   string // as in "FloatStorage"
	Element int64  // size of an element in bytes; 0 if the class is not known
	Count   int64  // number of elements
	// Tensor is the name of the first tensor in the storage, as in "model.0.weight". It is empty if the name
	// is not known.
	Tensor string
}

// Kind returns the kind of the numbers in the storage.
func (s *Storage) Kind() finite.Kind {
	k, _ := finite.KindOf(s.Class)
	return k
}

// Object is the object in a pickle.
type Object struct {
	// Root is the object as pickle.Builder builds it. Storages and tensors in it are of type *Storage.
	Root any
	// Storages has the storages by their keys.
	Storages map[string]*Storage
	// Options has numbers from the program's own arguments (argparse.Namespace). It has those whose names
	// ReadObject was given.
	Options map[string]int64
}

// ReadObject reads one pickle. options are the names for Object.Options. ReadObject runs no code that the
// pickle names. The error is pickle.ErrTooBig if the pickle is too large.
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

// check returns an error if the class of a storage is not known.
func (o *Object) check() error {
	for _, s := range o.Storages {
		if s.Element == 0 || s.Count < 0 {
			return flaw.New("a storage of its object is of the unknown class %q", flaw.Short(s.Class))
		}
	}
	return nil
}

// add handles the persistent ID of a storage. It is a tuple of the word "storage", a class, a key, a device
// and the number of elements. If the storage is part of another one, the tuple also says which part.
func (o *Object) add(id any) any {
	t, ok := id.(pickle.Tuple)
	if !ok || len(t) < 5 || t[0] != "storage" {
		return nil // not a storage, but for example the source of a module
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

// called returns the results of functions that pickles of torch.save call. For a tensor, that is its storage,
// for an OrderedDict a dict, and for a parameter its tensor.
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

// Limits of the search for the names of tensors.
const (
	maxNamed = 1 << 20
	maxDeep  = 16
)

// name sets the names of the tensors in a value.
func name(v any, at string, depth int, named *int) {
	if *named++; *named > maxNamed || depth > maxDeep {
		return
	}
	within := func(key any) string {
		part := "?" // the key is a tuple, which may be very large
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
