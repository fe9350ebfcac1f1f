package ssh

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// selfPath is this very program, even if its file has been replaced meanwhile.
const selfPath = "/proc/self/exe"

// errDynamic is why a program is not sent to other hosts.
var errDynamic = errors.New("this gangrun is dynamically linked, and would not run on every host and in every image")

// Self is this program, to be put on other hosts. One that is not static is
// refused.
func Self() (Program, error) {
	file, err := os.Open(selfPath)
	if err != nil {
		return Program{}, fmt.Errorf("read this program: %w", err)
	}
	defer file.Close()
	image, err := elf.NewFile(file)
	if err != nil {
		return Program{}, fmt.Errorf("read this program: %w", err)
	}
	if slices.ContainsFunc(image.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return Program{}, errDynamic
	}
	return ProgramAt(selfPath, "")
}

// ProgramAt is the program in a file, under a name.
func ProgramAt(path, name string) (Program, error) {
	file, err := os.Open(path)
	if err != nil {
		return Program{}, err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return Program{}, fmt.Errorf("read %s: %w", path, err)
	}
	p := Program{
		Hash: hex.EncodeToString(sum.Sum(nil)), Name: name, Size: size,
		Open: func() (io.ReadCloser, error) { return os.Open(path) },
	}
	p.packed = p.packings()
	return p, nil
}
