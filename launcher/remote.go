package launcher

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/gangrun/gangrun/internal/wire"
)

// remote is the agent of one host, from the controller's side.
type remote struct {
	host   string
	cores  int
	memory int64
	client wire.AgentClient

	once  sync.Once
	grpc  *grpc.ClientConn
	link  Link
	ended error
}

// Silence after which an agent counts as lost: a ping is sent after pingEvery
// without a word from it, and must be answered within pingLimit.
const (
	pingEvery = 10 * time.Second // the least that gRPC allows
	pingLimit = 10 * time.Second
)

// maxMessage bounds a message, in bytes: see agent.MaxMessage.
const maxMessage = 256 << 20

func connect(ctx context.Context, d Dialer, host, tmpdir string) (*remote, error) {
	link, err := d.Dial(ctx, host)
	if err != nil {
		return nil, err
	}
	conns := make(chan net.Conn, 1)
	conns <- link.Conn
	// The link is the trust: a socket pair, or later an SSH session.
	g, err := grpc.NewClient("passthrough:///"+host,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case c := <-conns:
				return c, nil
			default:
				return nil, errors.New("the agent's connection is broken")
			}
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithInitialWindowSize(256<<10), grpc.WithInitialConnWindowSize(1<<20),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingLimit, PermitWithoutStream: true}),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, errors.Join(err, link.End(ctx))
	}
	a := &remote{host: host, client: wire.NewAgentClient(g), grpc: g, link: link}
	hello, err := a.client.Hello(ctx, &wire.HelloRequest{Host: host, Tmpdir: tmpdir})
	if err != nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
		defer cancel()
		return nil, errors.Join(ended(ctx, err), a.end(ending))
	}
	a.cores, a.memory = int(hello.Cores), hello.Memory
	return a, nil
}

// end closes the connection and waits until the agent is gone.
func (a *remote) end(ctx context.Context) error {
	a.once.Do(func() {
		_ = a.grpc.Close()
		a.ended = a.link.End(ctx)
	})
	return a.ended
}
