package resumable

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// echo is a service with one stream, which sends back everything that it receives.
var echo = grpc.ServiceDesc{
	ServiceName: "echo",
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: "Echo", ServerStreams: true, ClientStreams: true,
		Handler: func(_ any, s grpc.ServerStream) error {
			for {
				var m wrapperspb.BytesValue
				if err := s.RecvMsg(&m); err != nil {
					if err == io.EOF {
						return nil
					}
					return err
				}
				if err := s.SendMsg(&m); err != nil {
					return err
				}
			}
		},
	}},
}

// once is a listener with one connection.
type once struct {
	conns  chan net.Conn
	closed chan struct{}
	stop   func()
}

func listenOnce(c net.Conn) *once {
	l := &once{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.stop = sync.OnceFunc(func() { close(l.closed) })
	l.conns <- c
	return l
}

func (l *once) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *once) Close() error   { l.stop(); return nil }
func (l *once) Addr() net.Addr { return addr{} }

// TestGRPC uses a bidirectional stream of gRPC while its carrier is cut a hundred times.
func TestGRPC(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const cuts = 100
	ctx, fail := context.WithCancel(t.Context())
	client, server := pair(t, Options{})

	var all sync.WaitGroup
	defer func() { fail(); all.Wait() }()
	service := grpc.NewServer()
	service.RegisterService(&echo, nil)
	all.Go(func() { service.Serve(listenOnce(server)) })
	defer service.Stop()
	dials := make(chan net.Conn, 1)
	dials <- client
	channel, err := grpc.NewClient("passthrough:///stream", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: patience}),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case c := <-dials:
				return c, nil
			default:
				t.Error("gRPC noticed a cut, and dialled again")
				return nil, errors.New("dialled already")
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer channel.Close()

	done := make(chan struct{})
	all.Go(func() {
		defer close(done)
		for range cuts {
			w, a, b := newWire(1+rng.IntN(200_000), rng.IntN(4) == 0)
			var carries sync.WaitGroup
			carries.Go(func() { carryBoth(t, client, server, a, b, true) })
			select {
			case <-w.struck:
			case <-ctx.Done():
			}
			w.cut()
			carries.Wait()
		}
	})
	stream, err := channel.NewStream(ctx, &echo.Streams[0], "/echo/Echo")
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan []byte, 1000)
	all.Go(func() {
		defer close(sent)
		rng := rand.New(rand.NewPCG(seed, 1))
		for n := uint64(0); ; n++ {
			select {
			case <-done:
				stream.CloseSend()
				return
			default:
			}
			p := binary.BigEndian.AppendUint64(make([]byte, 0, 1<<14), n)
			p = p[:8+rng.IntN(1<<14-8)]
			select {
			case sent <- p:
			case <-ctx.Done():
				return
			}
			if err := stream.SendMsg(wrapperspb.Bytes(p)); err != nil {
				t.Errorf("SendMsg: %v", err)
				return
			}
		}
	})
	// This carrier comes after the last cut.
	_, a, b := newWire(-1, false)
	all.Go(func() {
		<-done
		clientErr, serverErr := carryBoth(t, client, server, a, b, true)
		if clientErr != nil || serverErr != nil {
			t.Errorf("the last carrier ended by %v and %v", clientErr, serverErr)
		}
	})
	count := 0
	for p := range sent {
		var m wrapperspb.BytesValue
		if err := stream.RecvMsg(&m); err != nil {
			t.Errorf("message %d: %v", count, err)
			fail()
			break
		}
		if string(m.Value) != string(p) {
			t.Errorf("message %d is not what was sent", count)
			fail()
			break
		}
		count++
	}
	var m wrapperspb.BytesValue
	if err := stream.RecvMsg(&m); ctx.Err() == nil && err != io.EOF {
		t.Errorf("after the last message: %v", err)
	}
	t.Logf("%d messages through %d cuts", count, cuts)
}
