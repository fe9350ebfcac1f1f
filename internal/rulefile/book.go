package rulefile

import (
	"fmt"
	"io"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/safefile"
)

// Read reads the file of rules at path. Its errors are usage errors (failure.CodeUsage).
func Read(path string) (File, error) {
	in, err := safefile.Open(path)
	if err != nil {
		return File{}, &failure.Error{Code: failure.CodeUsage, Err: fmt.Errorf("read the rules: %w", err), Hint: "give the path of a file of rules"}
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, MaxBytes+1))
	if err != nil {
		return File{}, &failure.Error{Code: failure.CodeUsage, Err: fmt.Errorf("read the rules: %w", err)}
	}
	f, err := Parse(path, data)
	if err != nil {
		return File{}, &failure.Error{Code: failure.CodeUsage, Err: err, Hint: (&Error{}).Hint()}
	}
	return f, nil
}

// Book returns gangrun's own rules and those of the file at path. An empty path means no file.
func Book(path string) (*rule.Book, error) {
	if path == "" {
		return rules.Standard(), nil
	}
	f, err := Read(path)
	if err != nil {
		return nil, err
	}
	return rules.Standard().With(f.Rules), nil
}
