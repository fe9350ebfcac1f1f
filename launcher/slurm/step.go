package slurm

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/remote/stepserver"
)

// Limits for the end of a step. Slurm itself needs up to a second.
const (
	endLimit  = 3 * time.Second // how long servers may take to end after they were asked to
	termLimit = 5 * time.Second // time between SIGTERM and SIGKILL to srun
)

// step is one call of srun.
type step struct {
	nodes    []string
	cmd      *exec.Cmd
	out, err string // files
	done     chan struct{}
	reported map[string]bool // guarded by Steps.mu
	taken    bool            // the failure of the step was returned; guarded by Steps.mu
}

// start starts servers on nodes. The caller holds s.mu.
func (s *Steps) start(nodes []string) error {
	name := ""
	for i := 0; ; i++ { // an earlier controller may have used some names
		name = s.path(fmt.Sprintf("%04d", i))
		if _, err := os.Lstat(name + ".out"); errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	out, err := os.OpenFile(name+".out", os.O_CREATE|os.O_WRONLY|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	errs, err := os.OpenFile(name+".err", os.O_CREATE|os.O_WRONLY|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer errs.Close()
	srun := s.options.Srun
	if srun == "" {
		srun = "srun"
	}
	public := s.key.Public().(ed25519.PublicKey)
	st := &step{nodes: nodes, out: name + ".out", err: name + ".err", done: make(chan struct{}), reported: map[string]bool{}}
	st.cmd = exec.Command(srun, append(srunArgs(nodes, s.options.Program), stepserver.Args(public, s.options.Grace, s.options.Starts)...)...)
	st.cmd.Env = srunEnv(os.Environ())
	st.cmd.Dir = "/"
	st.cmd.Stdout, st.cmd.Stderr = out, errs
	// The step outlives this process: a later controller adopts its agents.
	st.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := st.cmd.Start(); err != nil {
		return fmt.Errorf("start servers on the nodes of this job: %w", err)
	}
	s.steps = append(s.steps, st)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = st.cmd.Wait() }()
	go s.watch(st, ended)
	return nil
}

// watch reads the reports of the servers of a step until the step ends.
func (s *Steps) watch(st *step, ended <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	signals := signalCounts{}
	for over, all := false, false; !over; {
		select {
		case <-tick.C:
		case <-ended:
			over = true
		}
		lines := printed(st.out)
		if s.options.Signal != nil {
			for _, sig := range signals.news(lines) {
				s.options.Signal(sig)
			}
		}
		s.mu.Lock()
		for _, r := range reports(lines) {
			if !st.reported[r.Node] {
				st.reported[r.Node] = true
				s.servers[r.Node] = r
				s.signal()
			}
		}
		if !all && len(st.reported) == len(st.nodes) {
			all = true
			tick.Reset(signalEvery)
		}
		if over {
			close(st.done)
			s.signal()
		}
		unasked := over && !s.closing
		s.mu.Unlock()
		if unasked && s.options.Ended != nil {
			s.options.Ended()
		}
	}
}

// signalCounts is how often each signal has arrived. It counts the server that has received the signal most often,
// because the batch system signals all servers of a step.
type signalCounts map[syscall.Signal]int

// news returns the signals that have arrived since the last call. lines has all lines that the servers have printed so
// far.
func (c signalCounts) news(lines []string) (all []syscall.Signal) {
	type key struct {
		node string
		sig  syscall.Signal
	}
	got := map[key]int{}
	for _, text := range lines {
		node, sig, ok := stepserver.ParseSignal(text)
		if !ok {
			continue
		}
		got[key{node, sig}]++
		if got[key{node, sig}] > c[sig] {
			c[sig]++
			all = append(all, sig)
		}
	}
	return all
}

// signal wakes the goroutines that wait for a change. The caller holds s.mu.
func (s *Steps) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// over reports whether srun has ended.
func (st *step) over() bool {
	select {
	case <-st.done:
		return true
	default:
		return false
	}
}

// end waits for the end of srun. If that takes too long, end ends srun.
func (st *step) end() error {
	for _, next := range []struct {
		signal os.Signal
		after  time.Duration
	}{{syscall.SIGTERM, endLimit}, {syscall.SIGKILL, termLimit}} {
		select {
		case <-st.done:
			return nil
		case <-time.After(next.after):
			_ = st.cmd.Process.Signal(next.signal)
		}
	}
	select {
	case <-st.done:
		return nil
	case <-time.After(termLimit):
		return fmt.Errorf("srun (process %d) does not end", st.cmd.Process.Pid)
	}
}

// StepError reports that srun could not start a server on a node.
type StepError struct {
	Node string
	Text string // what srun printed
}

// Error names the node, and repeats what srun has printed.
func (e *StepError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("srun has not started a server on %s, and does not say why", e.Node)
	}
	return fmt.Sprintf("srun has not started a server on %s: %s", e.Node, e.Text)
}

// Hint names commands that show the state of the node.
func (e *StepError) Hint() string {
	return fmt.Sprintf("see the state of the node: scontrol show node %[1]s; and try: srun --overlap -w %[1]s -N1 -n1 hostname", e.Node)
}

// failure returns why the step has no server on a node.
func (st *step) failure(node string) error {
	data, _ := os.ReadFile(st.err)
	var lines []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "srun: error: "))
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	text := strings.Join(lines, "; ")
	if len(text) > 400 {
		text = text[:400] + "..."
	}
	return &StepError{Node: node, Text: strings.ToValidUTF8(text, "?")}
}

// srunArgs returns the arguments for an srun that starts a server on each of some nodes. Without these arguments, srun
// would use the settings that the user's script has for its own steps, wait for free CPUs (--overlap), or end all
// servers when one ends.
func srunArgs(nodes []string, program string) []string {
	n := strconv.Itoa(len(nodes))
	return []string{
		"--overlap", "-N" + n, "-n" + n, "--ntasks-per-node=1", "-w", strings.Join(nodes, ","), "--mem=0", "--cpu-bind=none", "--mpi=none",
		"--kill-on-bad-exit=0", "-W", "0", "--no-kill", "-i", "none", "-u", "--job-name=gangrun", "--", program,
	}
}

// srunEnv returns the environment of srun. It leaves out variables that would be options for srun, and variables that
// describe the step of this process. Without the options for GPUs, a step gets all GPUs that the job has on its nodes.
func srunEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		for _, prefix := range []string{"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_TASKS_PER", "SLURM_MEM_PER", "SLURM_CPUS_PER_TASK", "SLURM_DISTRIBUTION", "SLURM_TRES", "SLURM_STEP", "SLURM_HINT", "SLURM_EXCLUSIVE", "SLURM_OVERLAP", "SLURM_KILL_BAD_EXIT", "SLURM_WAIT", "SLURM_CPU_BIND", "SLURM_MPI_TYPE", "SRUN_", "SLURM_UNBUFFEREDIO", "SLURM_LABELIO", "SLURM_OPEN_MODE", "SLURM_RESV_PORTS", "SLURM_PROLOG", "SLURM_EPILOG", "SLURM_TASK_PROLOG", "SLURM_TASK_EPILOG", "SLURM_GPUS", "SLURM_GPU_", "SLURM_CPUS_PER_GPU", "SLURM_GRES", "SLURM_EXACT", "PMI_", "PMIX_"} {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return false
	})
}
