package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/internal/testhosts/slurm"
)

const (
	// bedName is the name of this program in the shell, where it requests an action.
	bedName = "bed"
	// socketEnv is the variable with the path of the socket for requests.
	socketEnv = "GANGRUN_TESTHOSTS"
)

// askLimit bounds the reading of a request: a client that is stopped must not delay the end of
// the hosts.
const askLimit = 10 * time.Second

// answer is the reply to a request.
type answer struct {
	Text string
	Fail bool
}

// server carries out the requests that it gets through a socket.
type server struct {
	bed    *testhosts.Bed
	slurm  *slurm.Cluster // nil if there is none
	dir    string         // of the program bed
	listen net.Listener
	group  sync.WaitGroup
}

// serve starts to serve requests; close stops that. The cluster may be nil.
func serve(b *testhosts.Bed, c *slurm.Cluster) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{bed: b, slurm: c, dir: filepath.Join(b.Controller().Home(), "bin")}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Symlink(self, filepath.Join(s.dir, bedName)); err != nil {
		return nil, err
	}
	if s.listen, err = net.Listen("unix", s.socket()); err != nil {
		return nil, err
	}
	s.group.Go(s.accept)
	return s, nil
}

func (s *server) socket() string { return filepath.Join(s.dir, "socket") }

// env returns the variables by which a process finds the program, and that the server.
func (s *server) env() []string {
	return []string{"PATH=" + s.dir + ":" + os.Getenv("PATH"), socketEnv + "=" + s.socket()}
}

func (s *server) close() error {
	err := s.listen.Close()
	s.group.Wait()
	return err
}

func (s *server) accept() {
	for {
		conn, err := s.listen.Accept()
		if err != nil {
			return // it was closed
		}
		s.group.Go(func() {
			defer conn.Close()
			var words []string
			_ = conn.SetReadDeadline(time.Now().Add(askLimit)) // a socket supports a deadline
			if json.NewDecoder(conn).Decode(&words) != nil {
				return // the client is gone
			}
			text, err := s.act(words)
			if err != nil {
				text = err.Error()
			}
			_ = json.NewEncoder(conn).Encode(answer{Text: text, Fail: err != nil})
		})
	}
}

// ask sends a request to the server and returns this program's exit code.
func ask(words []string) int {
	text, err := question(os.Getenv(socketEnv), words)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", bedName, err)
		return 1
	}
	fmt.Print(text)
	return 0
}

func question(socket string, words []string) (string, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return "", fmt.Errorf("the shell of \"make hosts\" does not answer: %w", err)
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(words); err != nil {
		return "", err
	}
	var a answer
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		return "", err
	}
	if a.Fail {
		return "", errors.New(strings.TrimSpace(a.Text))
	}
	return a.Text, nil
}
