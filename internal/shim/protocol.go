package shim

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Variable is the name of the environment variable that has the address of the agent's socket.
const Variable = "GANGRUN_AGENT"

// Greeting is the first message of a shim or rsh agent.
type Greeting struct {
	Shim bool     `json:"shim,omitempty"`
	Rank int      `json:"rank,omitempty"`
	PMIx []string `json:"pmix,omitempty"` // variables that name the PMIx server of the shim
	// Node and Command are set by an rsh agent. They are the host and the command of a daemon
	// that mpirun wants to start.
	Node    string `json:"node,omitempty"`
	Command []byte `json:"command,omitempty"`
}

// Descriptors is how many descriptors the agent sends to a shim: three for the rank's standard streams, and one for its
// heartbeats.
const Descriptors = 4

// Order describes the rank that a shim must start. The agent sends the rank's Descriptors before the Order.
type Order struct {
	Path    []byte   `json:"path"`
	Argv    [][]byte `json:"argv"`
	Env     [][]byte `json:"env"` // added to the shim's own variables
	Workdir []byte   `json:"workdir"`
	CPUs    string   `json:"cpus,omitempty"` // the CPUs to which the rank is bound
}

// Word is a message of a shim about its rank. The first one has the PID, and the last one the
// exit status.
type Word struct {
	PID    int    `json:"pid,omitempty"`
	Error  string `json:"error,omitempty"` // why the rank could not be started
	Errno  int    `json:"errno,omitempty"`
	Told   bool   `json:"told,omitempty"` // Open MPI wants the rank to end
	Ended  bool   `json:"ended,omitempty"`
	Status uint32 `json:"status,omitempty"` // the status that wait(2) returns
}

// receive receives n files that are attached to one byte. They are close-on-exec.
func receive(conn *os.File, n int) ([]int, error) {
	oob := make([]byte, unix.CmsgSpace(4*n))
	_, got, _, _, err := unix.Recvmsg(int(conn.Fd()), make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:got])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("no descriptors came"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != n {
		return nil, errors.Join(errors.New("not all descriptors came"), err)
	}
	return fds, nil
}
