// Package exact writes and reads JSON whose strings may hold any bytes, as in arguments, environment variables and
// paths on Linux. encoding/json replaces every byte that is not UTF-8 by U+FFFD, so a program that reads the JSON gets
// a different string.
//
// A string that is UTF-8 is written as encoding/json writes it. In any other string each byte that is not UTF-8 becomes
// U+0000 and two hexadecimal digits: "caf\xe9" is written "caf\u0000e9". No argument, variable or path has a NUL byte,
// so this form cannot be mistaken for text. If a string does have NUL bytes, they are written in the same way.
package exact

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
	"unicode/utf8"
)

// mark is the byte before the two digits that stand for one byte.
const mark = 0

// Marshal returns the JSON of v. It first brings all strings into the written form. Methods
// MarshalJSON of v and of its parts see them in that form.
func Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil || !bytes.Contains(data, []byte(`\ufffd`)) && !bytes.Contains(data, []byte(`\u0000`)) {
		return data, err
	}
	return json.Marshal(Escaped(v))
}

// Escaped returns a copy of v whose strings are in the written form, for an encoder
// of encoding/json.
func Escaped[T any](v T) T { return Map(v, escape) }

// Unmarshal parses the output of Marshal, and stores the result in the value to which v points.
// It reads any other JSON as encoding/json does.
func Unmarshal(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	if bytes.Contains(data, []byte(`\u0000`)) {
		at := reflect.ValueOf(v).Elem()
		at.Set(mapped(at, unescape))
	}
	return nil
}

// Map returns a copy of v in which change has been applied to every string that an exported
// field, an element or a key holds. The copy and v share no memory in which strings are stored.
func Map[T any](v T, change func(string) string) T {
	at := reflect.ValueOf(&v).Elem()
	at.Set(mapped(at, change))
	return v
}

func mapped(v reflect.Value, change func(string) string) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		return reflect.ValueOf(change(v.String())).Convert(v.Type())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		inner := mapped(v.Elem(), change)
		if v.Kind() == reflect.Pointer {
			at := reflect.New(inner.Type())
			at.Elem().Set(inner)
			inner = at
		}
		out.Set(inner)
		return out
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(mapped(v.Index(i), change))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entry := v.MapRange(); entry.Next(); {
			out.SetMapIndex(mapped(entry.Key(), change), mapped(entry.Value(), change))
		}
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(mapped(v.Field(i), change))
			}
		}
		return out
	}
	return v
}

// escape returns the written form of a string.
func escape(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, mark) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == mark || r == utf8.RuneError && size == 1 {
			b.WriteByte(mark)
			b.WriteString(hex.EncodeToString([]byte{s[0]}))
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// unescape returns the string that has the written form s. A NUL byte without two digits after it stays, because older
// versions wrote files without this form.
func unescape(s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] == mark && i+2 < len(s) {
			if raw, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b = append(b, raw...)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}
