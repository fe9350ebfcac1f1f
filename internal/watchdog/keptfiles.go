package watchdog

import (
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// keptFiles are the files that a watchdog keeps open for its agent. The inner watchdog forwards each message to the
// outer watchdog, so that the outer watchdog keeps the same files open. The inner watchdog also sends the agent's PID
// to the outer one.
type keptFiles struct {
	above *socket // nil in the outer watchdog
	kept  map[string][]int
	agent atomic.Int64
	ended chan struct{} // closed when no more messages can come from below
}

// newKeptFiles starts to receive files from the process below a watchdog. It does so until that process is gone. Files
// that were not dropped by then stay open until the watchdog ends.
func newKeptFiles(dog *process) (*keptFiles, error) {
	s := &keptFiles{kept: map[string][]int{}, ended: make(chan struct{})}
	below, err := newSocket(dog.below)
	if err != nil {
		return nil, err
	}
	if dog.above != nil {
		above, err := newSocket(dog.above)
		if err != nil {
			return nil, err
		}
		s.above = &above
		s.forwardUp(append([]byte{opAgent}, strconv.Itoa(dog.child)...), nil)
	}
	go func() { defer close(s.ended); s.receive(below) }() // the goroutine ends with the process below
	return s, nil
}

// agentPID returns the PID of the agent. It returns 0 if the inner watchdog was killed before it could send the PID.
func (s *keptFiles) agentPID() int {
	<-s.ended
	return int(s.agent.Load())
}

func (s *keptFiles) forwardUp(message, rights []byte) {
	if s.above != nil {
		_ = s.above.send(message, rights) // the files are closed if the outer watchdog is gone
	}
}

// receive reads from a socket until the other end is gone.
func (s *keptFiles) receive(below socket) {
	message, rights := make([]byte, 1024), make([]byte, unix.CmsgSpace(4*maxRights))
	for {
		n, oob, err := below.receive(message, rights)
		if err != nil || n == 0 {
			return
		}
		name := string(message[1:n])
		switch message[0] {
		case opAgent:
			pid, _ := strconv.Atoi(name)
			s.agent.Store(int64(pid))
		case opDrop:
			for _, fd := range s.kept[name] {
				_ = unix.Close(fd)
			}
			delete(s.kept, name)
			s.forwardUp(message[:n], nil)
		case opKeep:
			fds := receivedFDs(rights[:oob])
			s.kept[name] = append(s.kept[name], fds...)
			s.forwardUp(message[:n], unix.UnixRights(fds...))
		}
	}
}

func receivedFDs(oob []byte) (all []int) {
	parts, _ := unix.ParseSocketControlMessage(oob) // never fails: the kernel has made it
	for _, part := range parts {
		fds, _ := unix.ParseUnixRights(&part)
		all = append(all, fds...)
	}
	return all
}
