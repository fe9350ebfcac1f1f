package view

import (
	"encoding/json"
	"io"

	"github.com/gangrun/gangrun/internal/exact"
)

// JSON writes v to w, indented, with a newline at the end. Strings, such as paths, may have
// bytes that are not UTF-8; package exact says how JSON writes such bytes.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(exact.Escaped(v))
}
