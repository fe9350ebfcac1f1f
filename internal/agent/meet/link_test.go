package meet

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testport"
	"github.com/gangrun/gangrun/internal/wire"
)

// slowed returns a peer that is reached through a proxy. In each direction, the proxy transfers rate bytes per second
// and delays each piece.
func slowed(t *testing.T, p *wire.Peer, rate int, delay time.Duration) *wire.Peer {
	t.Helper()
	var conns sync.WaitGroup
	t.Cleanup(conns.Wait)
	pass := func(to, from net.Conn) {
		defer to.Close()
		piece := make([]byte, max(rate/100, 64))
		for {
			n, err := from.Read(piece)
			if err != nil {
				return
			}
			timer := time.NewTimer(delay + time.Duration(n)*time.Second/time.Duration(rate))
			<-timer.C
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
	}
	port := listening(t, func(c net.Conn) {
		there, err := net.Dial("tcp", net.JoinHostPort(p.Address, strconv.Itoa(int(p.Port))))
		if err != nil {
			t.Error(err)
			return
		}
		var both sync.WaitGroup
		both.Go(func() { pass(there, c) })
		both.Go(func() { pass(c, there) })
		both.Wait()
	})
	return &wire.Peer{Host: p.Host, Address: "127.0.0.1", Port: port}
}

func TestLink(t *testing.T) {
	m := &Meeting{Peer: &wire.Peer{Host: "h1"}, secret: secret}
	fast := opened(t, "h2", secret)
	ways := []job.Speed{{Host: "h1", Kind: job.SpeedTrips, Of: "h2"}, {Host: "h1", Kind: job.SpeedLink, Of: "h2"}, {Host: "h2", Kind: job.SpeedLink, Of: "h1"}}
	speeds := m.Link(t.Context(), fast)
	for i, s := range speeds {
		if s.Host != ways[i].Host || s.Kind != ways[i].Kind || s.Of != ways[i].Of || s.Value <= 0 || s.Error != "" {
			t.Errorf("got %+v, want one as %+v", s, ways[i])
		}
	}
	const rate = 1 << 20
	slow := m.Link(t.Context(), slowed(t, fast, rate, 5*time.Millisecond))
	for i, s := range slow {
		if s.Error != "" || s.Value <= 0 || s.Value > speeds[i].Value/2 {
			t.Errorf("through a slow proxy: %+v, without it: %+v", s, speeds[i])
		}
	}
	if slow[0].Value > 100 { // each direction takes at least 5 ms
		t.Errorf("%.0f round trips in a second", slow[0].Value)
	}
	for i := 1; i < 3; i++ {
		if slow[i].Value > 1.5*rate {
			t.Errorf("%.0f bytes in a second through a proxy for %d", slow[i].Value, rate)
		}
	}
}

// TestLinkFails checks that all speeds of a link have an error if the link cannot be measured.
func TestLinkFails(t *testing.T) {
	m := &Meeting{Peer: &wire.Peer{Host: "h1"}, secret: secret}
	foreign := opened(t, "h2", []byte("that of another meeting"))
	other := opened(t, "h9", secret)
	other.Host = "h2"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		peer *wire.Peer
		want string
	}{
		"no port":         {t.Context(), &wire.Peer{Host: "h2", Error: "too many open files"}, "too many open files"},
		"refused":         {t.Context(), &wire.Peer{Host: "h2", Address: "127.0.0.1", Port: int32(testport.Refusing(t))}, "connection refused"},
		"another meeting": {t.Context(), foreign, "another host answers|reset"},
		"another host":    {t.Context(), other, "another host answers"},
		"ended":           {ended, opened(t, "h2", secret), "canceled"},
		"ends early": {t.Context(), &wire.Peer{Host: "h2", Address: "127.0.0.1", Port: listening(t, func(c net.Conn) {
			if _, err := io.ReadFull(c, make([]byte, len(proof(secret, "")))); err == nil {
				_, _ = c.Write(proof(secret, "h2"))
			}
		})}, "EOF|reset|broken pipe"},
	} {
		for _, s := range m.Link(test.ctx, test.peer) {
			said := false
			for _, want := range strings.Split(test.want, "|") {
				said = said || strings.Contains(s.Error, want)
			}
			if s.Value != 0 || !said {
				t.Errorf("%s: got %+v, want %q", name, s, test.want)
			}
		}
	}
}
