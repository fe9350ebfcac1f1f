package rules

import (
	"bytes"
	"os"
	"testing"
)

const documentPath = "../../../docs/categories.md"

func TestDocument(t *testing.T) {
	var b bytes.Buffer
	if err := Document(&b); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(documentPath, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b.Bytes()) {
		t.Errorf("%s is not what Document writes: run UPDATE=1 go test ./internal/diagnose/rules", documentPath)
	}
}
