// Package meet lets the hosts of a gang test their connections. Each host finds out whether it reaches the
// others over the network, how fast the network is, and whether the other hosts see the same directory.
package meet

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"sync"

	"github.com/gangrun/gangrun/internal/agent/survey/pathfact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/runclock"
	"github.com/gangrun/gangrun/internal/wire"
)

// Meeting is this host's side of a meeting: the test of connections that the package comment describes. It answers
// the other hosts until Close.
type Meeting struct {
	// Peer is what the other hosts must know about this host. The address in it is empty.
	Peer *wire.Peer

	secret   []byte
	answerer *answerer // nil if the host could not open a port
	mark     shareMark
}

// Open opens a port on address. If dir is not empty, it also writes a file to dir, for which the other hosts
// look. All hosts of a meeting use the same secret.
func Open(host, address, dir string, secret []byte) *Meeting {
	m := &Meeting{Peer: &wire.Peer{Host: host}, secret: secret, mark: shareMark{dir: dir, secret: secret}}
	var err error
	if m.answerer, err = answer(address, proof(secret, ""), proof(secret, host)); err != nil {
		m.Peer.Error = pathfact.Reason(err)
	} else {
		m.Peer.Port = int32(m.answerer.port())
	}
	// If the file cannot be written, the survey reports why.
	m.Peer.Wrote = dir != "" && m.mark.write(host) == nil
	return m
}

// Look finds out whether each peer answers over the network. If this host could write its own file, Look also
// looks for the files of the peers. Otherwise shared is nil.
func (m *Meeting) Look(ctx context.Context, peers []*wire.Peer) (reach []job.ReachFact, shared *job.SharedFact) {
	var wg sync.WaitGroup
	wg.Go(func() {
		ctx, cancel := runclock.WithTimeoutCause(ctx, reachLimit, errNoAnswer)
		defer cancel()
		reach = reachAll(ctx, m.secret, peers)
	})
	if m.Peer.Wrote {
		wg.Go(func() { shared = m.mark.look(ctx, m.Peer.Host, peers) })
	}
	wg.Wait()
	return reach, shared
}

// Close closes the port and removes the file of this host.
func (m *Meeting) Close() {
	if m.answerer != nil {
		m.answerer.close()
	}
	if m.Peer.Wrote {
		m.mark.remove(m.Peer.Host)
	}
}

// proof returns the answer by which a host proves its name, and proves that it knows the secret of the meeting. The
// proof for an empty name is the question.
func proof(secret []byte, host string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(host))
	return h.Sum(nil)
}
