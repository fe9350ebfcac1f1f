package agent

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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/agent/notify"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// reachLimit bounds all of a host's connections to the others. What does not answer
// is tried again every reachAgain beside the tries before: on a line that loses
// packets TCP alone asks too seldom.
const (
	reachLimit = 5 * time.Second
	reachAgain = time.Second
)

// reachAtOnce is how many connections a host makes, or answers, at the same time.
const reachAtOnce = 64

// Meet implements wire.AgentServer.
func (s *server) Meet(stream wire.Agent_MeetServer) error {
	ask, err := stream.Recv()
	if err != nil {
		return err
	}
	host, _ := s.settings.get()
	if len(ask.Secret) == 0 {
		return status.Error(codes.InvalidArgument, "a meeting without a secret")
	}
	reply := &wire.MeetReply{}
	door, err := openDoor(ask.Address, proof(ask.Secret, ""), proof(ask.Secret, host))
	if err != nil {
		reply.Error = reason(err)
	} else {
		defer door.close()
		reply.Port = int32(door.port())
	}
	mark := shareMark{dir: string(ask.Dir), secret: ask.Secret}
	if mark.dir != "" && mark.write(host) == nil { // why it cannot is the survey's to say
		defer mark.remove(host)
		reply.Wrote = true
	}
	if err := stream.Send(reply); err != nil {
		return err
	}
	next, err := stream.Recv()
	if err != nil {
		return orEnd(err)
	}
	var wg sync.WaitGroup
	var reach []job.ReachFact
	var shared *job.SharedFact
	wg.Go(func() {
		ctx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		wg.Go(func() { notify.Wait(ctx.Done(), reachLimit); cancel() })
		reach = reachAll(ctx, ask.Secret, next.Peers)
	})
	if reply.Wrote {
		wg.Go(func() { shared = mark.look(stream.Context(), host, next.Peers) })
	}
	wg.Wait()
	reply = &wire.MeetReply{}
	if reply.Reach, err = exact.Marshal(reach); err == nil && shared != nil {
		reply.Shared, err = exact.Marshal(shared)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if err := stream.Send(reply); err != nil {
		return err
	}
	_, err = stream.Recv() // the others may not have met this host yet
	return orEnd(err)
}

// orEnd returns what is wrong with the end of a stream.
func orEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// proof is what a host says to show that it is the one of that name, and of the
// meeting; the empty name asks for it.
func proof(secret []byte, host string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(host))
	return h.Sum(nil)
}

// door is an open port that answers who knows the meeting's secret.
type door struct {
	listener net.Listener
	wg       sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc
}

// openDoor opens a port on an address, or on all where the host knows of no such
// address: it may be translated on the way.
func openDoor(address string, question, answer []byte) (*door, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		l, err = net.Listen("tcp", ":0")
	}
	if err != nil {
		return nil, err
	}
	d := &door{listener: l}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.wg.Go(func() {
		slots := make(chan struct{}, reachAtOnce)
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				select { // the host has no room for it now
				case <-time.After(10 * time.Millisecond):
					continue
				case <-d.ctx.Done():
					return
				}
			}
			slots <- struct{}{} // freed within reachLimit
			d.wg.Go(func() {
				defer func() { <-slots }()
				ctx, cancel := context.WithTimeout(d.ctx, reachLimit)
				defer cancel()
				d.answer(ctx, conn, question, answer)
			})
		}
	})
	return d, nil
}

func (d *door) port() int { return d.listener.Addr().(*net.TCPAddr).Port }

func (d *door) answer(ctx context.Context, conn net.Conn, question, answer []byte) {
	defer closing(ctx, conn)()
	heard := make([]byte, len(question))
	if _, err := io.ReadFull(conn, heard); err == nil && hmac.Equal(heard, question) {
		// Who asked sees whether it came.
		_, _ = conn.Write(answer)
	}
}

func (d *door) close() {
	d.cancel()
	_ = d.listener.Close()
	d.wg.Wait()
}

// closing closes conn when ctx ends, or what it returns is called. The other side
// sees a reset for the first: that nothing more came has told it nothing.
func closing(ctx context.Context, conn net.Conn) func() {
	stop := context.AfterFunc(ctx, func() {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	})
	return func() {
		if stop() {
			_ = conn.Close()
		}
	}
}

// reachAll connects to every peer until ctx ends. Those for which there was no time
// left are not told of.
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
		if ctx.Err() != nil { // the tries before give their places back then
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

// reachOne asks a peer for its proof until it has come, is wrong or is refused, or
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
	fact.Error = "no answer within " + reachLimit.String()
	for {
		select {
		case t := <-tries:
			if t.err == nil {
				fact.Error, fact.Time = "", t.time
				return fact
			}
			var late net.Error
			if ctx.Err() == nil && !(errors.As(t.err, &late) && late.Timeout()) {
				fact.Error = reason(t.err)
			}
			if errors.Is(t.err, errStranger) || errors.Is(t.err, unix.ECONNREFUSED) {
				return fact
			}
		case <-tick.C:
			begin()
		case <-ctx.Done():
			return fact
		}
	}
}

// try is what came of asking a peer once.
type try struct {
	time time.Duration // of the answer
	err  error
}

// errStranger is what somebody else's answer is.
var errStranger = errors.New("another host answers at that address")

func ask(ctx context.Context, secret []byte, p *wire.Peer) try {
	to := net.JoinHostPort(p.Address, strconv.Itoa(int(p.Port)))
	conn, err := (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", to)
	if err != nil {
		return try{err: err}
	}
	defer closing(ctx, conn)()
	begun := time.Now()
	heard, want, n := make([]byte, sha256.Size), proof(secret, p.Host), 0
	if _, err = conn.Write(proof(secret, "")); err == nil {
		n, err = io.ReadFull(conn, heard)
	}
	switch {
	case !hmac.Equal(heard[:n], want[:n]) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return try{err: errStranger}
	case err == nil:
		return try{time: time.Since(begun)}
	}
	return try{err: err}
}
