// Package kubectl runs commands in the pods of a Kubernetes cluster by means of kubectl exec.
package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"sync"
)

// Agent is the path of a script in the launcher pods of the MPI Operator v1. mpirun runs in a launcher pod, and
// starts its daemons in the worker pods with this script, which runs kubectl exec. OMPI_MCA_plm_rsh_agent names the
// script.
const Agent = "/etc/mpi/kubexec.sh"

// operatorProgram is where the MPI Operator v1 puts kubectl.
const operatorProgram = "/opt/kube/kubectl"

// Pods gives access to the pods of a namespace. kubectl gets the namespace from the service account of this
// pod, or from kubectl's configuration.
type Pods struct {
	Program   string // the path of kubectl
	Container string // the container of each pod; if it is empty, kubectl chooses
}

// Find returns the Pods that kubectl reaches from this machine. In a launcher pod of the MPI Operator v1, it
// uses the operator's kubectl if PATH has no kubectl, and the container that the script Agent names. Outside of
// tests, read is os.ReadFile.
func Find(read func(path string) ([]byte, error)) (Pods, error) {
	program, err := exec.LookPath("kubectl")
	if err != nil {
		program, err = exec.LookPath(operatorProgram)
	}
	if err != nil {
		return Pods{}, errNoProgram{}
	}
	script, err := read(Agent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Pods{}, fmt.Errorf("the container of the pods is not known: %w", err)
	}
	return Pods{program, containerOf(script)}, nil
}

// containerOption matches the option by which the script Agent names the container.
var containerOption = regexp.MustCompile(`(?m)kubectl exec .*--container ([a-z0-9-]+)`)

// containerOf returns the container that the script Agent names, or "".
func containerOf(script []byte) string {
	if found := containerOption.FindSubmatch(script); found != nil {
		return string(found[1])
	}
	return ""
}

// errNoProgram means that this machine has no kubectl.
type errNoProgram struct{}

// Error says where kubectl was looked for.
func (errNoProgram) Error() string {
	return "kubectl is not in a directory of PATH, and is not " + operatorProgram
}

// Hint says what to do next.
func (errNoProgram) Hint() string {
	return "install kubectl, or add its directory to PATH; or use --launcher ssh"
}

// Pod runs commands in one pod. Each command has a kubectl of its own.
type Pod struct {
	name string
	pods Pods

	mu        sync.Mutex
	closed    bool
	processes []*Process
}

// Pod returns a Pod for the pod of that name. It does not find out whether the pod exists.
func (p Pods) Pod(name string) *Pod { return &Pod{name: name, pods: p} }

// Words returns the beginning of a command line of kubectl that runs a program in the pod. The caller adds the
// program and its arguments.
func (p *Pod) Words() []string {
	words := []string{"kubectl", "exec", "-i", p.name}
	if p.pods.Container != "" {
		words = append(words, "-c", p.pods.Container)
	}
	return append(words, "--")
}

// Run starts command, a line for sh, in the pod. ctx limits only the start.
func (p *Pod) Run(ctx context.Context, command string) (*Process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("pod %q: starting a command: %w", p.name, os.ErrClosed)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("pod %q: starting a command: %w", p.name, err)
	}
	process, err := p.start(command)
	if err != nil {
		return nil, fmt.Errorf("pod %q: starting kubectl: %w", p.name, err)
	}
	p.processes = append(p.processes, process)
	return process, nil
}

// Close kills every kubectl that Run has started, and waits for its end. Data that kubectl has already sent may
// still reach the pod.
func (p *Pod) Close() error {
	p.mu.Lock()
	p.closed = true
	processes := p.processes
	p.mu.Unlock()
	for _, process := range processes {
		_ = process.Close()
	}
	for _, process := range processes {
		<-process.ended
	}
	return nil
}

// Err returns nil, because a Pod has no connection that could be lost while no command runs.
func (p *Pod) Err() error { return nil }
