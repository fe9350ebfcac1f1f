// Package agentstest connects tests to agents that run in the process of the test.
package agentstest

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"

	"github.com/gangrun/gangrun/internal/wire"
)

// Serve runs an agent on one end of a connection and returns the other end. The function cut breaks
// the connection. The function end stops the agent, and returns when the agent has ended.
func Serve(agent wire.AgentServer) (conn net.Conn, cut func(), end func(context.Context) error) {
	here, there := net.Pipe()
	server := grpc.NewServer()
	wire.RegisterAgentServer(server, agent)
	l := &once{conns: make(chan net.Conn, 1)}
	l.conns <- there
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	return here, func() { _ = there.Close() }, func(context.Context) error {
		server.Stop()
		<-served
		return nil
	}
}

// once is a listener with one connection.
type once struct {
	conns chan net.Conn
	close sync.Once
}

func (o *once) Accept() (net.Conn, error) {
	if c, ok := <-o.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (o *once) Close() error { o.close.Do(func() { close(o.conns) }); return nil }
func (*once) Addr() net.Addr { return &net.UnixAddr{} }
