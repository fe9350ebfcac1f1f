package meet

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/agent/survey/pathfact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// The commands that a host sends to a peer after the peer has proved its name. Each is one byte.
const (
	linkEcho = 'e' // send back each byte
	linkSink = 's' // read for linkTime, then send the rate in bytes per second
	linkFlow = 'f' // send until the connection ends
)

const (
	linkTime  = 250 * time.Millisecond // time for each direction
	tripsTime = 50 * time.Millisecond
	mostTrips = 200
	linkChunk = 256 << 10
)

// Link measures how fast data flows from this host to a peer and back. Each direction has a time limit.
func (m *Meeting) Link(ctx context.Context, p *wire.Peer) []job.Speed {
	here := m.Peer.Host
	trips := job.Speed{Host: here, Kind: job.SpeedTrips, Of: p.Host}
	there := job.Speed{Host: here, Kind: job.SpeedLink, Of: p.Host}
	back := job.Speed{Host: p.Host, Kind: job.SpeedLink, Of: here}
	for _, one := range []struct {
		speed   *job.Speed
		command byte
		measure func(net.Conn) (float64, error)
	}{{&trips, linkEcho, echoed}, {&there, linkSink, sent}, {&back, linkFlow, received}} {
		value, err := m.link(ctx, p, one.command, one.measure)
		if one.speed.Value = value; err != nil {
			one.speed.Error = pathfact.Reason(err)
		}
	}
	return []job.Speed{trips, there, back}
}

// link connects to a peer, sends it a command and measures.
func (m *Meeting) link(ctx context.Context, p *wire.Peer, command byte, measure func(net.Conn) (float64, error)) (float64, error) {
	if p.Port == 0 {
		return 0, errors.New("it could not open a port: " + p.Error)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reachLimit, errNoAnswer)
	defer cancel()
	conn, err := (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", net.JoinHostPort(p.Address, strconv.Itoa(int(p.Port))))
	if err != nil {
		return 0, cause(ctx, err)
	}
	defer closing(ctx, conn)()
	// Data that is still on its way does not matter, and must not delay the next measurement.
	_ = conn.(*net.TCPConn).SetLinger(0)
	answer := make([]byte, sha256.Size)
	if _, err = conn.Write(proof(m.secret, "")); err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errOtherHost // the peer does not know the secret
	}
	if err != nil {
		return 0, cause(ctx, err)
	}
	if !hmac.Equal(answer, proof(m.secret, p.Host)) {
		return 0, errOtherHost
	}
	if _, err := conn.Write([]byte{command}); err != nil {
		return 0, cause(ctx, err)
	}
	value, err := measure(conn)
	return value, cause(ctx, err)
}

// cause returns the reason why ctx has ended. If ctx has not ended, it returns err.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// serveLink does what the peer asks for, until the connection ends.
func serveLink(conn net.Conn) {
	command := make([]byte, 1)
	if _, err := conn.Read(command); err != nil {
		return // the peer only wanted the answer
	}
	switch command[0] {
	case linkEcho:
		_, _ = io.Copy(conn, conn)
	case linkSink:
		if rate, err := received(conn); err == nil {
			_, _ = conn.Write(binary.BigEndian.AppendUint64(nil, uint64(rate)))
			// If conn were closed while it has unread data, the connection would be reset, perhaps before the peer has
			// received the rate.
			_, _ = io.Copy(io.Discard, conn)
		}
	case linkFlow:
		flow(conn)
	}
}

// echoed measures round trips. It returns how many round trips a second would have if each took as long as the shortest
// one.
func echoed(conn net.Conn) (float64, error) {
	one, shortest := []byte{1}, time.Hour
	begun := time.Now()
	for range mostTrips {
		at := time.Now()
		if _, err := conn.Write(one); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(conn, one); err != nil {
			return 0, err
		}
		if shortest = min(shortest, time.Since(at)); time.Since(begun) > tripsTime {
			break
		}
	}
	return 1 / max(shortest, time.Nanosecond).Seconds(), nil
}

// received reads for linkTime after the first byte. It returns how many bytes arrived per second.
func received(conn net.Conn) (float64, error) {
	buffer := make([]byte, linkChunk)
	if _, err := conn.Read(buffer); err != nil {
		return 0, err
	}
	begun, bytes := time.Now(), 0
	for time.Since(begun) < linkTime {
		n, err := conn.Read(buffer)
		if bytes += n; err != nil {
			return 0, err
		}
	}
	return float64(bytes) / time.Since(begun).Seconds(), nil
}

// sent sends data until the peer has reported how fast it receives.
func sent(conn net.Conn) (float64, error) {
	told := make(chan error, 1)
	rate := make([]byte, 8)
	go func() {
		_, err := io.ReadFull(conn, rate)
		_ = conn.SetWriteDeadline(time.Unix(1, 0)) // ends flow
		told <- err
	}()
	flow(conn)
	err := <-told
	return float64(binary.BigEndian.Uint64(rate)), err
}

// flow sends until the connection ends, or its deadline passes.
func flow(conn net.Conn) {
	buffer := make([]byte, linkChunk)
	for {
		if _, err := conn.Write(buffer); err != nil {
			return
		}
	}
}
