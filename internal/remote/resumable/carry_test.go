package resumable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble runs a test with the fake clock of synctest. A peer must report a refusal within a limited time.
func inBubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// isCarried reports whether the stream has a carrier on which the hello of the peer has arrived.
func (c *Conn) isCarried() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link.met
}

// awaitCarried waits until isCarried returns true.
func awaitCarried(t *testing.T, c *Conn) {
	t.Helper()
	for begun := time.Now(); !c.isCarried(); time.Sleep(100 * time.Microsecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("not carried after a minute")
		}
	}
}

// carrying carries a stream over an unbroken wire. At the end of the test, it cuts the wire. The returned function
// waits until both sides have ended, and returns their errors.
func carrying(t *testing.T, client, server *Conn) (*wire, func() (error, error)) {
	t.Helper()
	w, a, b := newWire(-1, false)
	var clientErr, serverErr error
	over := make(chan struct{})
	go func() {
		defer close(over)
		clientErr, serverErr = carryBoth(t, client, server, a, b, true)
	}()
	awaitCarried(t, client)
	wait := func() (error, error) { <-over; return clientErr, serverErr }
	t.Cleanup(func() { w.cut(); wait() })
	return w, wait
}

func mustWrite(t *testing.T, c *Conn, text string) {
	t.Helper()
	if n, err := io.WriteString(c, text); n != len(text) || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
}

func mustRead(t *testing.T, c *Conn, text string) {
	t.Helper()
	p := make([]byte, len(text))
	if _, err := io.ReadFull(c, p); err != nil || string(p) != text {
		t.Fatalf("read %q, %v; want %q", p, err, text)
	}
}

// TestEveryCut cuts a short conversation at each of its bytes in turn, also in the hello and at the end, and resumes
// it on another carrier.
func TestEveryCut(t *testing.T) {
	cuts := 0
	for budget := 1; ; budget++ {
		client, server := pair(t, Options{})
		w, a, b := newWire(budget, false)
		read := make(chan string, 2)
		for _, c := range []*Conn{client, server} {
			mustWrite(t, c, "a word for the other side")
		}
		// Each side reads what the other side has written, and then closes.
		for _, c := range []*Conn{client, server} {
			go func() {
				p := make([]byte, 25)
				n, _ := io.ReadFull(c, p)
				c.Close()
				read <- string(p[:n])
			}()
		}
		clientErr, serverErr := carryBoth(t, client, server, a, b, budget%2 == 0)
		broken := clientErr != nil || serverErr != nil
		if broken {
			cuts++
			_, a, b = newWire(-1, false)
			clientErr, serverErr = carryBoth(t, client, server, a, b, budget%2 == 0)
		}
		if clientErr != nil || serverErr != nil {
			t.Fatalf("cut at byte %d: then ended by %v and %v, want nil", budget, clientErr, serverErr)
		}
		for range 2 {
			if got := <-read; got != "a word for the other side" {
				t.Fatalf("cut at byte %d: read %q", budget, got)
			}
		}
		select {
		case <-w.struck:
			continue
		default:
		}
		if greetings := 2 * (len(preamble) + frameBytes + helloBytes); cuts < greetings+2*25 {
			t.Errorf("%d cuts for greetings of %d bytes", cuts, greetings)
		}
		return
	}
}

func TestSuperseding(t *testing.T) {
	client, server := pair(t, Options{})
	mustWrite(t, client, "one")
	_, first := carrying(t, client, server)
	mustRead(t, server, "one")
	_, second := carrying(t, client, server)
	if a, b := first(); a != ErrSuperseded || !errors.Is(b, ErrSuperseded) && !ordinary(b) {
		t.Errorf("the first carries ended by %v and %v", a, b)
	}
	mustWrite(t, server, "two")
	mustRead(t, client, "two")
	if !client.isCarried() || !server.isCarried() {
		t.Error("not carried by the second carrier")
	}
	client.Close()
	server.Close()
	if a, b := second(); a != nil || b != nil {
		t.Errorf("the second carries ended by %v and %v", a, b)
	}
}

// TestStaleCarrier checks that the listener refuses a carrier that is older than the present carrier of the stream.
func TestStaleCarrier(t *testing.T) {
	client, server := pair(t, Options{})
	_, a, b := newWire(-1, false)
	stale := make(chan error, 1)
	go func() { stale <- client.Carry(t.Context(), a) }()
	p, err := Accept(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	_, newer := carrying(t, client, server)
	if err := <-stale; err != ErrSuperseded {
		t.Errorf("the client's first Carry = %v", err)
	}
	err = server.CarryPending(t.Context(), p)
	if refused, ok := errors.AsType[*Refused](err); !ok || refused.ByPeer || !errors.Is(err, ErrSuperseded) {
		t.Errorf("the server's Carry of the stale carrier = %v", err)
	}
	mustWrite(t, client, "still here")
	mustRead(t, server, "still here")
	client.Close()
	server.Close()
	newer()
}

func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		server func(t *testing.T, client *Conn) *Conn
	}{
		"another stream": {func(t *testing.T, client *Conn) *Conn { return New(Options{ID: NewID()}) }},
		"server anew":    {anew},
		"server anew that has written as much": {func(t *testing.T, client *Conn) *Conn {
			c := anew(t, client)
			mustWrite(t, c, "and more of it")
			return c
		}},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			for _, accepting := range []bool{true, false} {
				client, server := pair(t, Options{})
				w, wait := carrying(t, client, server)
				mustWrite(t, client, "before")
				mustRead(t, server, "before")
				w.cut()
				wait()
				mustWrite(t, client, " after")
				stranger := test.server(t, client)
				_, a, b := newWire(-1, false)
				var clientErr, serverErr error
				var both sync.WaitGroup
				both.Go(func() { clientErr = client.Carry(t.Context(), a) })
				both.Go(func() {
					if !accepting {
						serverErr = stranger.Carry(t.Context(), b)
						return
					}
					p, err := Accept(t.Context(), b)
					if err != nil {
						t.Error(err)
						return
					}
					serverErr = stranger.CarryPending(t.Context(), p)
				})
				both.Wait()
				refused, ok := errors.AsType[*Refused](clientErr)
				if !ok || !errors.Is(clientErr, ErrUnknownStream) || refused.Text == "" {
					t.Errorf("the client's Carry = %v", clientErr)
				}
				if ok && accepting && !refused.ByPeer {
					t.Error("the listener's side answered a hello that it could have refused")
				}
				if !errors.Is(serverErr, ErrUnknownStream) {
					t.Errorf("the server's Carry = %v", serverErr)
				}
				if strings.Contains(fmt.Sprint(clientErr, serverErr), client.ID().String()) {
					t.Errorf("%v or %v tells the whole ID", clientErr, serverErr)
				}
				if client.isCarried() || stranger.isCarried() {
					t.Error("carried by a carrier that was refused")
				}
				carrying(t, client, server) // the stream must still work
				mustRead(t, server, " after")
			}
		}))
	}
}

// anew returns a side that was started again and knows only the ID of the stream.
func anew(t *testing.T, client *Conn) *Conn { return New(Options{ID: client.ID()}) }

func TestRefusedByListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := pair(t, Options{})
		_, a, b := newWire(-1, false)
		done := make(chan error, 1)
		go func() { done <- client.Carry(t.Context(), a) }()
		p, err := Accept(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Refuse(t.Context(), "the run is over"); err != nil {
			t.Error(err)
		}
		err = <-done
		if r, ok := errors.AsType[*Refused](err); !ok || !r.ByPeer || r.Text != "the run is over" || !errors.Is(err, ErrUnknownStream) {
			t.Errorf("Carry = %v", err)
		}
	})
}

func TestOtherPeers(t *testing.T) {
	var other bytes.Buffer
	other.WriteString(magic + "\x02")
	other.WriteString("something new that version 1 cannot read, of some length")
	for name, test := range map[string]struct {
		says   string
		want   error
		quoted string
	}{
		"another version":            {other.String(), ErrVersion, "version 1 here, 2 there"},
		"its refusal":                {magic + "\x02" + string(appendRefusal(nil, &Refused{Reason: ErrVersion, Text: "be newer"})), ErrVersion, "be newer"},
		"a refusal yet unknown":      {magic + "\x01" + string(appendFrame(nil, kindRefuse, 5)) + "\xc8full", nil, "refused by the peer: full"},
		"a banner":                   {"Welcome to host h1!\n", ErrProtocol, `"Welcome to host h1!\n"`},
		"a banner that begins alike": {"gangrunners of the world", ErrProtocol, `"gangrunners of the world"`},
		"nothing":                    {"", io.EOF, ""},
		"a part":                     {"gang", io.ErrUnexpectedEOF, ""},
		"no hello":                   {preamble + string(appendFrame(nil, kindBeat, 0)), ErrProtocol, "hello"},
		"an empty hello":             {preamble + string(appendHello(nil, hello{})), ErrProtocol, "hello"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			client, _ := pair(t, Options{})
			for who, carry := range map[string]func(c io.ReadWriteCloser) error{
				"Carry": func(c io.ReadWriteCloser) error { return client.Carry(t.Context(), c) },
				"Accept": func(c io.ReadWriteCloser) error {
					_, err := Accept(t.Context(), c)
					return err
				},
			} {
				_, a, b := newWire(-1, false)
				io.WriteString(b, test.says)
				var answer []byte
				said := make(chan struct{})
				go func() {
					defer close(said)
					if test.want == io.EOF || test.want == io.ErrUnexpectedEOF {
						b.Close()
						return
					}
					answer, _ = io.ReadAll(b)
				}()
				err := carry(a)
				<-said
				if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.quoted) {
					t.Errorf("%s = %v", who, err)
				}
				if test.quoted == "version 1 here, 2 there" && !bytes.Contains(answer, []byte("let both sides be the same gangrun")) {
					t.Errorf("%s told the peer %q", who, answer)
				}
			}
			if client.isCarried() || !client.Heard().IsZero() {
				t.Error("a peer was heard")
			}
		}))
	}
}

func TestAcceptIsBounded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("late")
	_, a, b := newWire(-1, false)
	io.WriteString(a, "gangr")
	cancel(late)
	if _, err := Accept(ctx, b); err != late {
		t.Errorf("Accept = %v", err)
	}
	if _, err := b.Write([]byte("x")); err != io.ErrClosedPipe {
		t.Errorf("a Write on the carrier = %v: it was not closed", err)
	}
}

func TestCarryEndsWithContext(t *testing.T) {
	for name, met := range map[string]bool{"in the greeting": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			client, server := pair(t, Options{})
			_, a, b := newWire(-1, false)
			var serving sync.WaitGroup
			defer serving.Wait()
			if met {
				serving.Go(func() { server.Carry(t.Context(), b) })
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			done := make(chan error, 1)
			go func() { done <- client.Carry(ctx, a) }()
			if met {
				awaitCarried(t, client)
			}
			cancel(enough)
			if err := <-done; err != enough {
				t.Errorf("Carry = %v", err)
			}
			if client.isCarried() {
				t.Error("still carried")
			}
		})
	}
}

// TestRealCarriers uses connections of the standard library.
func TestRealCarriers(t *testing.T) {
	unix, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	for name, dial := range map[string]func() (net.Conn, net.Conn){
		"a pipe without a buffer": net.Pipe,
		"a socket":                func() (net.Conn, net.Conn) { return sockets(t, unix) },
	} {
		t.Run(name, func(t *testing.T) {
			client, server := pair(t, Options{})
			for range 3 {
				a, b := dial()
				done := make(chan struct{})
				go func() { defer close(done); carryBoth(t, client, server, a, b, true) }()
				big := strings.Repeat("0123456789", 100_000)
				var writing sync.WaitGroup
				writing.Go(func() { io.WriteString(client, big) })
				mustRead(t, server, big)
				writing.Wait()
				a.Close()
				<-done
			}
			a, b := dial()
			client.Close()
			server.Close()
			if clientErr, serverErr := carryBoth(t, client, server, a, b, false); clientErr != nil || serverErr != nil {
				t.Errorf("ended by %v and %v", clientErr, serverErr)
			}
		})
	}
}

func sockets(t testing.TB, l net.Listener) (net.Conn, net.Conn) {
	a, err := net.DialTimeout(l.Addr().Network(), l.Addr().String(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}
