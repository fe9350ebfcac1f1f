package agent

import (
	"bufio"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
)

// program says whether argument 0 of the command can be executed here.
func (v surveyor) program(ctx context.Context, ask job.Survey) job.ProgramFact {
	fact := job.ProgramFact{PathFact: job.PathFact{Path: ask.Command[0]}}
	path, err := process.LookPath(ask.Command[0], ask.Workdir, v.env)
	if path != "" {
		fact.Path = path
	}
	switch {
	case errors.Is(err, unix.EISDIR):
		fact.Dir = true
		fail(&fact.PathFact, err)
		return fact
	case err != nil && errorKind(err) == job.ErrorPermission:
		if _, statErr := os.Stat(path); statErr == nil {
			fail(&fact.PathFact, err) // it is there and is not executable
			return fact
		}
		fallthrough
	case err != nil:
		fail(&fact.PathFact, err)
		here := filepath.Join(ask.Workdir, ask.Command[0])
		if info, err := os.Stat(here); err == nil && info.Mode().IsRegular() && !strings.Contains(ask.Command[0], "/") {
			fact.Here, fact.Executable = here, process.Executable(here) == nil
		}
		return fact
	}
	fact.Executable = true
	info, err := os.Stat(path)
	if err == nil {
		fact.Bytes = info.Size()
	}
	// What may be executed need not be readable; then nothing more is known.
	if fact.SHA256, err = hashFile(ctx, path); err != nil {
		return fact
	}
	v.format(ctx, path, &fact)
	fact.MPI, fact.Library = mpilib.Of(path, v.env)
	fact.Library = mpilib.Versioned(fact.Library)
	return fact
}

// format finds out whether the kernel can execute the file, and whether its
// shared libraries resolve.
func (v surveyor) format(ctx context.Context, path string, fact *job.ProgramFact) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	head, _ := bufio.NewReader(file).Peek(256) // the kernel's BINPRM_BUF_SIZE
	switch {
	case strings.HasPrefix(string(head), elf.ELFMAG):
		v.elf(ctx, path, file, fact)
	case strings.HasPrefix(string(head), "#!"):
		line, _, _ := strings.Cut(string(head[2:]), "\n")
		// A carriage return is part of the name for the kernel, as it was for the
		// editor that left it there.
		if fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' }); len(fields) == 0 {
			fact.Format = "its #! line names no interpreter"
		} else if process.Executable(fields[0]) != nil {
			fact.Interpreter = fields[0]
		} else if filepath.Base(fields[0]) == "env" && len(fields) > 1 && !strings.HasPrefix(fields[1], "-") {
			if _, err := process.LookPath(fields[1], "/", v.env); err != nil {
				fact.Interpreter = fields[1]
			}
		}
	case len(head) == 0:
		fact.Format = "the file is empty"
	default:
		fact.Format = "it is neither an ELF program nor a script with a #! line"
	}
}

// machines are the ELF machines of Go's names for architectures.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390, "riscv64": elf.EM_RISCV,
}

func (v surveyor) elf(ctx context.Context, path string, file *os.File, fact *job.ProgramFact) {
	program, err := elf.NewFile(file)
	if err != nil {
		fact.Format = "its ELF header is damaged: " + err.Error()
		return
	}
	if want, ok := machines[runtime.GOARCH]; ok && program.Machine != want && program.Machine != elf.EM_386 {
		fact.Format = fmt.Sprintf("it is made for %s, and this host is %s", program.Machine, runtime.GOARCH)
		return
	}
	for _, segment := range program.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, min(segment.Filesz, 4096))
		if _, err := segment.ReadAt(name, 0); err != nil {
			return
		}
		loader := strings.TrimRight(string(name), "\x00")
		if _, err := os.Stat(loader); err != nil {
			fact.Interpreter = loader
			return
		}
		fact.Missing = v.missing(ctx, loader, path)
	}
}

// missing asks the program's own dynamic loader which libraries it does not
// find, in the environment of the ranks, running none of the program; nil where
// the loader is neither glibc's nor musl's.
func (v surveyor) missing(ctx context.Context, loader, path string) []string {
	argv, env, ok := listing(loader, path, v.env)
	if !ok {
		return nil
	}
	// The exit code tells nothing: musl's fails when a library is missing, and
	// says so on its standard error.
	out, _ := v.children.RunHelper(ctx, loader, argv, "/", env, nil, true)
	var names []string
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), " => not found"); ok {
			names = append(names, name)
		} else if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Error loading shared library "); ok { // musl
			name, _, _ := strings.Cut(rest, ":")
			names = append(names, name)
		}
	}
	return names
}
