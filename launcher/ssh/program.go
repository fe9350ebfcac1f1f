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
	"strings"
)

// Program is a static binary that gangrun installs on hosts. It must have the command of package selfcheck. By
// that command, a host checks that the program is complete and runs there.
type Program struct {
	Hash string // SHA-256, 64 lower-case hexadecimal digits
	Name string // name of the file on the host; empty means gangrun
	Size int64  // in bytes
	Open func() (io.ReadCloser, error)

	packed *packings // if it is nil, the program is compressed again for each host
}

// fileName returns the name of the program's file on a host.
func (p Program) fileName() string {
	if p.Name == "" {
		return "gangrun"
	}
	return p.Name
}

// check returns an error if a field is not valid, and so must not be part of a command line.
func (p Program) check() error {
	if raw, err := hex.DecodeString(p.Hash); err != nil || len(raw) != 32 || p.Hash != strings.ToLower(p.Hash) {
		return fmt.Errorf("program hash %q is not a SHA-256 in lower-case hexadecimal digits", p.Hash)
	}
	if p.Size <= 0 {
		return fmt.Errorf("program size %d is not above 0", p.Size)
	}
	if strings.Trim(p.fileName(), "abcdefghijklmnopqrstuvwxyz-") != "" || p.fileName()[0] == '-' {
		return fmt.Errorf("program name %q may only have a to z and dashes", p.Name)
	}
	return nil
}

// selfPath is the path of this process's program. It works even if the file has been replaced.
const selfPath = "/proc/self/exe"

// errDynamic is the error if the program is dynamically linked, and so cannot be installed on other hosts.
var errDynamic = errors.New("this gangrun is dynamically linked, and would not run on every host and in every image")

// Self returns the program of this process. It returns an error if the program is not static.
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

// ProgramAt returns the program in the file path. name is the name of the file on the hosts.
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
