package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bobName is the name of the command that runs a command as bob.
const bobName = "bob"

// bobScript is that command. PATH begins with a directory that the nodes of the cluster see,
// too.
const bobScript = `#!/bin/sh
cd %[1]s || exit
[ $# -gt 0 ] || set -- bash
exec %[2]s env PATH="%[1]s/bin:$PATH" "$@"
`

// addBob adds the command bob to the shell, and copies the gangrun on PATH, if any, for bob.
func (s *server) addBob() error {
	dir := s.slurm.Dir(bobName)
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"gangrun", "gangrun-nvml"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if err := copyProgram(filepath.Join(dir, "bin", name), path); err != nil {
			return err
		}
	}
	script := fmt.Sprintf(bobScript, dir, strings.Join(s.slurm.Prefix(bobName), " "))
	return os.WriteFile(filepath.Join(s.dir, bobName), []byte(script), 0o755)
}

// copyProgram copies a program.
func copyProgram(to, from string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	_, err = io.Copy(target, source)
	return err
}
