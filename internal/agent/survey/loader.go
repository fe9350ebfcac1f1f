package survey

import (
	"context"
	"debug/elf"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/pattern"
)

// lacking matches the line with which glibc's loader reports that a library is too old for a program, as in "./train:
// /lib/libc.so.6: version `GLIBC_2.38' not found (required by ./train)".
var lacking = pattern.New("^.+: (/?.+): version `(.+)' .+ \\(required by .+\\)$")

// missing asks the program's dynamic loader which libraries it does not find in the environment of the ranks, and which
// libraries are too old. It runs no code of the program. It returns nil if the loader is neither glibc's nor musl's.
func (v Surveyor) missing(ctx context.Context, loader, path string) (names, old []string) {
	argv, env, ok := listing(loader, path, v.Env)
	if !ok {
		return nil, nil
	}
	// The exit code does not matter. If a library is missing, musl's loader fails and names the library on its standard
	// error.
	out, _ := v.Children.RunHelper(ctx, loader, argv, "/", env, nil, true)
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), " => not found"); ok {
			names = append(names, name)
		} else if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Error loading shared library "); ok { // musl
			name, _, _ := strings.Cut(rest, ":")
			names = append(names, name)
		} else if match := lacking().FindStringSubmatch(strings.TrimSpace(line)); match != nil {
			if text := match[2] + " of " + filepath.Base(match[1]); !slices.Contains(old, text) {
				old = append(old, text)
			}
		}
	}
	return names, old
}

// libraries asks the program's dynamic loader which shared libraries it would load, and
// returns their versions.
func (v Surveyor) libraries(ctx context.Context, program string) (list []job.VersionFact) {
	if interpreter := mpilib.ScriptInterpreter(program, v.Env); interpreter != "" {
		program = interpreter
	}
	loader := loaderOf(program)
	if loader == "" {
		return nil
	}
	argv, env, ok := listing(loader, program, v.Env)
	if !ok {
		return nil
	}
	out, err := v.Children.RunHelper(ctx, loader, argv, "/", env, nil, true)
	if err != nil {
		return nil // a library is missing, and the survey of the program reports that
	}
	for line := range strings.Lines(string(out)) {
		// The line looks like "libm.so.6 => /lib/libm.so.6 (0x00007f12a2c4d000)".
		name, path, ok := strings.Cut(strings.TrimSpace(line), " => ")
		path, _, _ = strings.Cut(path, " (0x")
		if ok && filepath.IsAbs(path) {
			list = append(list, job.VersionFact{Kind: job.VersionLibrary, Name: name, Version: buildOf(path)})
		}
	}
	return list
}

// listing returns the command and the environment with which a dynamic loader lists a program's libraries. ok is false
// if the loader is neither glibc's nor musl's, because another loader might run the program. For glibc's loader,
// listing sets a variable and does not use --list, because with --list that loader stops at a missing library. See
// ld.so(8).
func listing(loader, program string, env []string) (argv, in []string, ok bool) {
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real // the kernel resolves links, too, so that $ORIGIN is the directory of the real program
	}
	switch name := filepath.Base(loader); {
	case strings.HasPrefix(name, "ld-musl-"):
		return []string{loader, "--list", program}, env, true
	case strings.HasPrefix(name, "ld-linux"), strings.HasPrefix(name, "ld64.so."):
		return []string{loader, program}, environ.Overlay(env, []string{"LD_TRACE_LOADED_OBJECTS=1"}), true
	}
	return nil, nil, false
}

// loaderOf returns the dynamic loader of a program, or "" if it has none.
func loaderOf(program string) string {
	file, err := elf.Open(program)
	if err != nil {
		return ""
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			name, err := io.ReadAll(io.LimitReader(segment.Open(), 4096))
			if err != nil {
				return ""
			}
			return strings.TrimRight(string(name), "\x00")
		}
	}
	return ""
}
