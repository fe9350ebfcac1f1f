package resumable

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestOldLine checks that an old carrier cannot send or receive anything after the hello on a newer carrier.
func TestOldLine(t *testing.T) {
	c, _ := pair(t, Options{})
	mustWrite(t, c, "text")
	var why error
	first := &line{conn: c, cancel: func(err error) { why = err }}
	second := &line{conn: c, cancel: func(error) {}}
	if err := errors.Join(c.enter(first, nil, nil), c.enter(second, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if why != ErrSuperseded {
		t.Errorf("the first line was ended by %v", why)
	}
	for what, err := range map[string]error{
		"data": first.take([]byte("x")),
		"ack":  first.ack(0),
		"end":  first.end(0),
		"bye":  first.partner(),
	} {
		if err != ErrSuperseded {
			t.Errorf("%s on the first line: %v", what, err)
		}
	}
	if b := first.next(nil, true); len(b) > 0 {
		t.Errorf("the first line still sends %q", b)
	}
	if c.in.len() > 0 || c.in.ended || c.out.len() != 4 {
		t.Error("the first line changed the stream")
	}
	c.leave(first)
	if c.link.line != second {
		t.Error("the first line took the second along")
	}
}

// TestBrokenPeers tests peers that send a valid hello and then break the protocol.
func TestBrokenPeers(t *testing.T) {
	data := func(n int) string {
		return string(appendFrame(nil, kindData, uint64(n))) + strings.Repeat("x", n)
	}
	frame := func(kind byte, arg uint64) string { return string(appendFrame(nil, kind, arg)) }
	for name, says := range map[string]string{
		"more than there is room for": data(600) + data(600),
		"an empty frame":              frame(kindData, 0),
		"a frame too big":             frame(kindData, dataBytes+1),
		"consumed what was not sent":  frame(kindAck, 5),
		"consumed less than before":   frame(kindAck, 1),
		"data after the end":          frame(kindEnd, 0) + data(1),
		"an end elsewhere":            frame(kindEnd, 1),
		"two ends":                    frame(kindEnd, 0) + frame(kindEnd, 0),
		"a bye too early":             frame(kindEnd, 0) + frame(kindBye, 0),
		"a second hello":              frame(kindHello, helloBytes),
		"a refusal without end":       frame(kindRefuse, 1<<40),
		"a frame that there is not":   frame('?', 0),
	} {
		t.Run(name, func(t *testing.T) {
			c := New(Options{Buffer: 1000})
			mustWrite(t, c, "text")
			greeting := appendHello([]byte(preamble), hello{instance: 1, generation: 1, received: 3, consumed: 2, buffer: 1})
			err := c.Carry(t.Context(), &speech{Reader: io.MultiReader(bytes.NewReader(greeting), strings.NewReader(says))})
			if !errors.Is(err, ErrProtocol) {
				t.Errorf("Carry = %v", err)
			}
		})
	}
}

// TestIdleAck checks that the writer can free its data even if the reader's side has nothing to send.
func TestIdleAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, Options{})
		w, a, b := newWire(-1, false)
		var all sync.WaitGroup
		all.Go(func() { carryBoth(t, client, server, a, b, true) })
		mustWrite(t, client, "a few bytes")
		mustRead(t, server, "a few bytes")
		for range 2 {
			time.Sleep(defaultBeat)
			synctest.Wait()
		}
		client.mu.Lock()
		if client.out.len() > 0 {
			t.Errorf("%d bytes are kept after two beats", client.out.len())
		}
		client.mu.Unlock()
		w.cut()
		all.Wait()
	})
}
