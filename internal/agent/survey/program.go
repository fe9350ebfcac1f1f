package survey

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
	"github.com/gangrun/gangrun/internal/agent/survey/pathfact"
	"github.com/gangrun/gangrun/internal/job"
)

// program returns whether the first word of the command can be executed here.
func (v Surveyor) program(ctx context.Context, ask job.Survey) job.ProgramFact {
	fact := job.ProgramFact{PathFact: job.PathFact{Path: ask.Command[0]}}
	path, err := process.LookPath(ask.Command[0], ask.Workdir, v.Env)
	if path != "" {
		fact.Path = path
	}
	switch {
	case errors.Is(err, unix.EISDIR):
		fact.Dir = true
		pathfact.Fail(&fact.PathFact, err)
		return fact
	case err != nil && pathfact.Kind(err) == job.ErrorPermission:
		if _, statErr := os.Stat(path); statErr == nil {
			pathfact.Fail(&fact.PathFact, err) // the program exists, but is not executable
			return fact
		}
		fallthrough
	case err != nil:
		pathfact.Fail(&fact.PathFact, err)
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
	// The program may be executable but not readable. Then nothing more can be found out.
	if fact.SHA256, err = pathfact.Hash(ctx, path); err != nil {
		return fact
	}
	v.format(ctx, path, &fact)
	fact.MPI, fact.Library = mpilib.Of(path, v.Env)
	fact.Library = mpilib.Versioned(fact.Library)
	return fact
}

// format finds out whether the kernel can execute the file, and whether all of the file's shared libraries are found.
func (v Surveyor) format(ctx context.Context, path string, fact *job.ProgramFact) {
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
		// For the kernel, a carriage return at the end is part of the name.
		if fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' }); len(fields) == 0 {
			fact.Format = "its #! line names no interpreter"
		} else if process.Executable(fields[0]) != nil {
			fact.Interpreter = fields[0]
		} else if filepath.Base(fields[0]) == "env" && len(fields) > 1 && !strings.HasPrefix(fields[1], "-") {
			if _, err := process.LookPath(fields[1], "/", v.Env); err != nil {
				fact.Interpreter = fields[1]
			}
		}
	case len(head) == 0:
		fact.Format = "the file is empty"
	default:
		fact.Format = "it is neither an ELF program nor a script with a #! line"
	}
}

// machines maps Go's names of architectures to ELF machines.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390, "riscv64": elf.EM_RISCV,
}

// elf checks an ELF program: its architecture, its dynamic loader and its libraries.
func (v Surveyor) elf(ctx context.Context, path string, file *os.File, fact *job.ProgramFact) {
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
		fact.Missing, fact.Old = v.missing(ctx, loader, path)
	}
}
