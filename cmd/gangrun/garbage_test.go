package main_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// garbageLimit is how long a random command may take. Every run has a time limit of 2 s.
const garbageLimit = 30 * time.Second

// TestGarbage is a part of TestSoakGarbage.
func TestGarbage(t *testing.T) {
	for seed := range uint64(24) {
		newGarbage(t, 1, seed).try(t)
	}
}

// garbage is a random command line, job file and environment. Some parts are valid, some are not, and some are noise.
type garbage struct {
	args []string
	env  []string
	file string // the content of job.yaml
	name string
}

// pieces are values for flags, keys and variables.
var pieces = []string{
	"", "0", "1", "2", "3", "-1", "8..16", "1..2", "2..1", "99999999999999999999", "1e9", "0x10", "1s", "2s", "1h", "-5s", "0s", "1.5h", "strict", "island=1s,host=2s",
	"auto", "on", "off", "none", "all", "full", "static", "first", "openmpi", "mpich", "rank", "verdict", "json", "text", "any", "uncontained",
	"localhost", "localhost:2", "localhost:0", "localhost:-1", "localhost:2,localhost:2", ",", ":", "[::1]:2", "user@localhost", "127.0.0.1:1",
	"job.yaml", "missing.yaml", ".", "/", "/dev/null", "/dev/zero", "/proc/self/mem", "a\xffb", "\x01\x1b[31m", "ключ", "{{.Rank}}", "{{", "{{.Nope}}", "${HOME}", "`id`", "$(id)",
	"A=b", "=b", "A", "A=", "PATH=", "LD_PRELOAD=/missing.so", "K=\xff", "- a\n- b", "{a: [}", "!!python/object:os.system", "&a *a", "~", "true", "yes", "'", "\"", "lo", "10.0.0.0/8",
}

// sound has valid values for flags and keys.
var sound = map[string][]string{
	"name": {"a", "ключ"}, "ranks": {"1", "2", "3", "1..2"}, "n": {"1", "2"}, "min-ranks": {"1"}, "loopback": {"0", "1", "2"}, "gpus-per-rank": {"0", "-1"}, "gpu-visibility": {"gang", "rank"},
	"hosts": {"localhost", "localhost:2"}, "host-timeout": {"3s"}, "orphan-grace": {"2s"}, "locality": {"any", "host"}, "patience": {"1s", "strict", "island=1s,host=2s"}, "env": {"A=b"}, "e": {"A=b", "K=\xff"},
	"workdir": {".", "/"}, "checkpoint-dir": {"ck"}, "retries": {"0", "1"}, "preflight": {"full", "static", "off"}, "trial-ranks": {"1", "2"}, "trial": {"on", "off", "uncontained"}, "grace": {"0s", "1s"},
	"output": {"first", "all", "failed", "none"}, "stdin": {"0", "all", "none"}, "tty": {"auto", "on", "off"}, "exit-code": {"rank", "verdict"}, "mpi": {"auto", "none"}, "env-compat": {"none", "openmpi", "all"},
	"init-timeout": {"0", "1s"}, "o": {"json", "text"}, "command": {"[true]", "echo hello", "[sh, -c, 'exit 3']"}, "secret": {"[A]", "[NOPE]"}, "inputs": {"[job.yaml]", "[missing]"}, "policy": {"{killed: never}"},
	"trial.time": {"1s"}, "trial.steps": {"1"}, "trial.command": {"[true]"}, "trial.env": {"{A: b}"}, "trial.args": {"[--small]"}, "trial.mode": {"on", "off"},
}

// garbageFlags has the flags of gangrun run. For other commands, some of them are unknown flags.
var garbageFlags = []string{
	"name", "ranks", "n", "min-ranks", "loopback", "gpus-per-rank", "gpu-visibility", "hosts", "hostfile", "inventory", "network", "host-timeout", "orphan-grace", "locality", "patience", "env", "e",
	"workdir", "checkpoint-dir", "resume", "retries", "preflight", "trial-ranks", "trial", "grace", "output", "stdin", "tty", "exit-code", "mpi", "env-compat", "init-timeout", "o", "v", "nope",
}

var garbageKeys = append([]string{"command", "secret", "inputs", "policy", "trial.time", "trial.steps", "trial.command", "trial.env", "trial.args", "trial.mode", "early_stop", "image", "version"}, garbageFlags...)

// GOMEMLIMIT is missing here, because Go's runtime does not start if its value is no size.
var garbageVariables = []string{
	"HOME", "PATH", "TMPDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "LANG", "LC_ALL", "TERM", "COLUMNS", "NO_COLOR", "TZ", "USER", "SHELL", "GANGRUN_NOPE", "GANGRUN_RUN", "GANGRUN_GANG",
	"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE", "PBS_NODEFILE", "LSB_HOSTS", "RANK", "WORLD_SIZE", "MASTER_ADDR", "PMI_FD", "PMIX_RANK", "OMPI_MCA_btl",
	"GOMAXPROCS", "GOGC", "SSH_AUTH_SOCK", "http_proxy",
}

// garbagePrograms has programs that end by themselves or at the time limit.
var garbagePrograms = [][]string{{"true"}, {"false"}, {"sh", "-c", "exit 7"}, {"sleep", "0.2"}, {"sleep", "100"}, {"missing-program"}, {"sh", "-c", "kill -9 $$"}, {"cat"}, {"echo", "step 1 loss nan"}, {"."}, {""}}

var garbageCommands = []string{"plan", "preflight", "topo", "leases", "ps", "status", "logs", "attach", "stop", "clean", "report", "diagnose", "mpiexec", "completion", "help", "nope", ""}

// newGarbage returns the nth combination of a seed.
func newGarbage(t testing.TB, seed, n uint64) garbage {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, n))
	one := func(from []string) string { return from[random.IntN(len(from))] }
	value := func() string {
		v := one(pieces)
		switch random.IntN(8) {
		case 0: // cut off
			v = v[:random.IntN(len(v)+1)]
		case 1: // noise
			v += string([]byte{byte(1 + random.IntN(255)), byte(1 + random.IntN(255))})
		case 2:
			v = strings.Repeat(v, random.IntN(2000))
		}
		return v
	}
	g := garbage{name: fmt.Sprintf("SEED=%d round %d", seed, n)}
	run := random.IntN(4) > 0
	if run {
		g.args = []string{"run"}
	} else {
		g.args = []string{one(garbageCommands)}
	}
	if run || g.args[0] == "preflight" { // here, because a later word may become the command of the job
		g.args = append(g.args, "--timeout", "2s")
	}
	wild := 25 // about one in so many values is not valid
	if random.IntN(2) == 0 {
		wild = 3
	}
	of := func(name string) string {
		if right := sound[name]; len(right) > 0 && random.IntN(wild+1) > 0 {
			return one(right)
		}
		return value()
	}
	for range random.IntN(5) {
		flag := one(garbageFlags)
		dashes := "--"
		if len(flag) == 1 {
			dashes = "-"
		}
		switch {
		case sound[flag] == nil && random.IntN(wild) > 0:
		case random.IntN(3) == 0 && dashes == "--":
			g.args = append(g.args, "--"+flag+"="+of(flag))
		default:
			g.args = append(g.args, dashes+flag, of(flag))
		}
	}
	if random.IntN(2) == 0 {
		g.file = garbageFile(random, wild, one, of)
		g.args = append(g.args, "job.yaml")
	}
	if random.IntN(3) == 0 {
		g.args = append(g.args, "--timeout", "2s")
	}
	if program := garbagePrograms[random.IntN(len(garbagePrograms))]; run && random.IntN(4) > 0 {
		g.args = append(append(g.args, "--"), program...)
	}
	for range max(0, random.IntN(6)-2) {
		g.env = append(g.env, one(garbageVariables)+"="+value())
	}
	for i, a := range g.args { // no argument can have a zero byte
		g.args[i] = strings.ReplaceAll(a, "\x00", "")
	}
	return g
}

func garbageFile(random *rand.Rand, wild int, one func([]string) string, of func(string) string) string {
	var lines []string
	if random.IntN(3) > 0 {
		lines = append(lines, "command: [sh, -c, 'exit 0']")
	}
	for range random.IntN(5) {
		key := one(garbageKeys)
		if sound[key] == nil && wild > 3 {
			continue
		}
		if group, sub, ok := strings.Cut(key, "."); ok {
			lines = append(lines, fmt.Sprintf("%s: {%s: %s}", group, sub, of(key)))
		} else {
			lines = append(lines, key+": "+of(key))
		}
	}
	text := []byte(strings.Join(lines, "\n"))
	for range max(0, random.IntN(5)-2) * (25 - wild) / 22 { // a few random bytes
		if len(text) > 0 {
			text[random.IntN(len(text))] = byte(random.IntN(256))
		}
	}
	return string(text)
}

// try runs the command. It fails the test if the command panics, hangs, fails without a message, leaves a process, or
// makes a run although it was refused.
func (g garbage) try(t *testing.T) (code int, took time.Duration) {
	t.Helper()
	b := newBench(t)
	if g.file != "" {
		if err := os.WriteFile(filepath.Join(b.dir, "job.yaml"), []byte(g.file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := b.command(g.args...)
	cmd.Env = append(cmd.Env, g.env...)
	var said, out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	timer := time.NewTimer(garbageLimit)
	defer timer.Stop()
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", g.name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	fail := func(format string, args ...any) {
		t.Helper()
		text := said.String()
		t.Errorf("%s: %s\ngangrun %q, environment %q, job.yaml %q\nit said:\n%s", g.name, fmt.Sprintf(format, args...), g.args, g.env, g.file, text[:min(len(text), 4000)])
	}
	select {
	case <-ended:
	case <-timer.C:
		_ = syscall.Kill(cmd.Process.Pid, syscall.SIGQUIT) // makes gangrun print its goroutines
		<-ended
		fail("it has not ended within %s", garbageLimit)
	}
	took, code = time.Since(begun), cmd.ProcessState.ExitCode()
	text := said.String()
	switch {
	case code < 0 || strings.Contains(text, "panic:") || strings.Contains(text, "fatal error:") || strings.Contains(text, "goroutine "):
		fail("it crashed: %s", cmd.ProcessState)
	case code != 0 && strings.TrimSpace(text+out.String()) == "":
		fail("it ended with %d and says nothing", code)
	case code == 64 && len(runsBelow(b.dir)) > 0:
		fail("it was refused, and has made the run %v", runsBelow(b.dir))
	}
	for deadline := time.Now().Add(exitLimit); ; time.Sleep(5 * time.Millisecond) {
		left := b.marked()[ownMark]
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			fail("it has left %v", slices.Collect(maps.Values(left)))
			for pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			break
		}
	}
	return code, took
}

// runsBelow returns the directories of runs below dir.
func runsBelow(dir string) (runs []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && filepath.Base(filepath.Dir(path)) == "runs" {
			runs = append(runs, path)
			return fs.SkipDir
		}
		return nil
	})
	return runs
}
