package view

import (
	"encoding/json"
	"io"

	"github.com/gangrun/gangrun/internal/exact"
)

// JSON writes v to w, indented, with a newline at the end. Strings may hold bytes that
// are not UTF-8, as paths do; package exact says how these are written.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(exact.Escaped(v))
}
