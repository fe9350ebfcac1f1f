package meet

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/survey/pathfact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// reachLimit limits the time for all connections of a host to the others. If a peer does not answer, the host asks it
// again after reachAgain, while earlier tries continue. TCP alone repeats packets too rarely if they are lost.
const (
	reachLimit = 5 * time.Second
	reachAgain = time.Second
)

// reachAtOnce is how many connections a host makes, or answers, at the same time.
const reachAtOnce = 64

// reachAll asks every peer until ctx ends. If there was no time to ask a peer, the result has no fact about it.
func reachAll(ctx context.Context, secret []byte, peers []*wire.Peer) []job.ReachFact {
	facts := make([]job.ReachFact, len(peers))
	slots := make(chan struct{}, reachAtOnce)
	var wg sync.WaitGroup
	for i, p := range peers {
		if p.Port == 0 {
			facts[i] = job.ReachFact{To: p.Host, Address: p.Address, Error: "it could not open a port: " + p.Error}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // the slot may be free only because ctx has ended
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			facts[i] = reachOne(ctx, secret, p)
		})
	}
	wg.Wait()
	return slices.DeleteFunc(facts, func(f job.ReachFact) bool { return f.To == "" })
}

// reachOne asks a peer until it answers, its answer is wrong, the connection is refused, or
// ctx ends.
func reachOne(ctx context.Context, secret []byte, p *wire.Peer) job.ReachFact {
	fact := job.ReachFact{To: p.Host, Address: p.Address}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	tries := make(chan try)
	begin := func() {
		wg.Go(func() {
			t := ask(ctx, secret, p)
			select {
			case tries <- t:
			case <-ctx.Done():
			}
		})
	}
	begin()
	tick := time.NewTicker(reachAgain)
	defer tick.Stop()
	fact.Error = errNoAnswer.Error()
	for {
		select {
		case t := <-tries:
			if t.err == nil {
				fact.Error, fact.Time = "", t.time
				return fact
			}
			var timeout net.Error
			if ctx.Err() == nil && !(errors.As(t.err, &timeout) && timeout.Timeout()) {
				fact.Error = pathfact.Reason(t.err)
			}
			if errors.Is(t.err, errOtherHost) || errors.Is(t.err, unix.ECONNREFUSED) {
				return fact
			}
		case <-tick.C:
			begin()
		case <-ctx.Done():
			return fact
		}
	}
}

// try is the result of asking a peer once.
type try struct {
	time time.Duration // until the answer arrived
	err  error
}

// errNoAnswer is the error if a peer does not answer in time.
var errNoAnswer = errors.New("no answer within " + reachLimit.String())

// errOtherHost is the error if an answer is wrong.
var errOtherHost = errors.New("another host answers at that address")

// ask asks a peer once.
func ask(ctx context.Context, secret []byte, p *wire.Peer) try {
	to := net.JoinHostPort(p.Address, strconv.Itoa(int(p.Port)))
	conn, err := (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", to)
	if err != nil {
		return try{err: err}
	}
	defer closing(ctx, conn)()
	begun := time.Now()
	answer, want, n := make([]byte, sha256.Size), proof(secret, p.Host), 0
	if _, err = conn.Write(proof(secret, "")); err == nil {
		n, err = io.ReadFull(conn, answer)
	}
	switch {
	case !hmac.Equal(answer[:n], want[:n]) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return try{err: errOtherHost}
	case err == nil:
		return try{time: time.Since(begun)}
	}
	return try{err: err}
}
