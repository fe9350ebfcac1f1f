package resumable

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestIDIsReadBack(t *testing.T) {
	id := NewID()
	if got, err := ParseID(id.String()); got != id || err != nil {
		t.Errorf("ParseID(%q) = %v, %v", id, got, err)
	}
	for _, bad := range []string{"", "00", id.String() + "00", strings.Repeat("x", 32)} {
		if _, err := ParseID(bad); err == nil {
			t.Errorf("ParseID(%q) gave no error", bad)
		}
	}
}

func TestCloseDeliversWhatWasWritten(t *testing.T) {
	client, server := pair(t, Options{})
	big := strings.Repeat("data in flight, ", 100_000)
	mustWrite(t, client, big)
	client.Close() // the stream has no carrier yet
	if _, err := client.Write([]byte("x")); err != net.ErrClosed {
		t.Errorf("Write after Close = %v", err)
	}
	if _, err := client.Read(make([]byte, 1)); err != net.ErrClosed {
		t.Errorf("Read after Close = %v", err)
	}
	w, broken := carrying(t, client, server)
	mustRead(t, server, big[:1000])
	w.cut()
	if a, b := broken(); a == nil || b == nil {
		t.Errorf("the cut carries ended by %v and %v", a, b)
	}
	_, wait := carrying(t, client, server)
	mustWrite(t, server, "what nobody reads any more")
	rest, err := io.ReadAll(server)
	if err != nil || string(rest) != big[1000:] {
		t.Errorf("the rest is %d bytes, %v; want %d", len(rest), err, len(big)-1000)
	}
	server.Close()
	if a, b := wait(); a != nil || b != nil {
		t.Errorf("the carries ended by %v and %v", a, b)
	}
	if client.out.ring != nil || server.in.ring != nil {
		t.Error("a stream that has ended holds memory")
	}
}

func TestCloseWakesWhoWaits(t *testing.T) {
	for name, end := range map[string]func(*Conn) error{
		"close": func(c *Conn) error { c.Close(); return net.ErrClosed },
		"abort": func(c *Conn) error { c.Abort(io.ErrNoProgress); return io.ErrNoProgress },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(Options{Buffer: 4})
				errs := make(chan error, 2)
				go func() { _, err := c.Read(make([]byte, 1)); errs <- err }()
				go func() {
					n, err := io.WriteString(c, "too long")
					if n != 4 {
						t.Errorf("wrote %d bytes into a buffer of 4", n)
					}
					errs <- err
				}()
				synctest.Wait()
				want := end(c)
				for range 2 {
					if err := <-errs; err != want {
						t.Errorf("woken with %v, want %v", err, want)
					}
				}
				if err := c.SetDeadline(time.Now()); err != net.ErrClosed {
					t.Errorf("SetDeadline = %v", err)
				}
			})
		})
	}
}

func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, Options{})
		_, wait := carrying(t, client, server)
		mustWrite(t, server, "dropped")
		why := errors.New("the host is lost")
		client.Abort(why)
		client.Abort(io.EOF) // only the first error counts
		if a, b := wait(); a != why || !ordinary(b) {
			t.Errorf("the carries ended by %v and %v", a, b)
		}
		if _, err := client.Read(make([]byte, 1)); err != why {
			t.Errorf("Read = %v", err)
		}
		_, a, b := newWire(-1, false)
		clientErr, serverErr := carryBoth(t, server, client, a, b, true)
		if !errors.Is(clientErr, ErrUnknownStream) || serverErr != why {
			t.Errorf("the carries after an abort ended by %v and %v", clientErr, serverErr)
		}
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Buffer: 4})
		begun := time.Now()
		read := func() error { _, err := c.Read(make([]byte, 1)); return err }
		write := func() error { _, err := io.WriteString(c, "too long"); return err }
		check := func(what string, err error, after time.Duration) {
			t.Helper()
			if d := time.Since(begun); err != os.ErrDeadlineExceeded || d != after {
				t.Errorf("%s = %v after %v, want the deadline after %v", what, err, d, after)
			}
		}
		c.SetReadDeadline(begun.Add(2 * time.Second))
		c.SetWriteDeadline(begun.Add(time.Second))
		check("Write", write(), time.Second)
		check("Write", write(), time.Second)
		check("Read", read(), 2*time.Second)

		// If a deadline changes while a call waits, the new deadline applies.
		c.SetDeadline(begun.Add(3 * time.Second))
		moved := make(chan error)
		go func() { moved <- read() }()
		synctest.Wait()
		c.SetDeadline(begun.Add(5 * time.Second))
		check("Read", <-moved, 5*time.Second)
		go func() { c.SetDeadline(time.Time{}); moved <- read() }()
		time.Sleep(time.Hour)
		c.SetReadDeadline(time.Now().Add(-1))
		check("Read", <-moved, 5*time.Second+time.Hour)

		var timeout net.Error
		if !errors.As(read(), &timeout) || !timeout.Timeout() {
			t.Error("the error is no timeout")
		}
	})
}

func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const buffer = 100_000
		client, server := pair(t, Options{Buffer: buffer})
		a, b := net.Pipe()
		var all sync.WaitGroup
		all.Go(func() { carryBoth(t, client, server, a, b, true) })
		content := bytes.Repeat([]byte("0123456789"), buffer)
		all.Go(func() { client.Write(content) })
		got := make([]byte, len(content))
		for at := 0; at < len(got); {
			synctest.Wait() // all goroutines are blocked
			client.mu.Lock()
			server.mu.Lock()
			held, kept := server.in.len(), client.out.len()
			if held > buffer || kept > buffer || len(server.in.ring) > buffer || len(client.out.ring) > buffer {
				t.Errorf("at %d: %d bytes held in %d, %d kept in %d; want %d at most", at, held, len(server.in.ring), kept, len(client.out.ring), buffer)
			}
			if left := len(content) - at; held < min(left, buffer*3/4) {
				t.Errorf("at %d: only %d bytes wait to be read", at, held)
			}
			server.mu.Unlock()
			client.mu.Unlock()
			n, err := io.ReadFull(server, got[at:min(len(got), at+7777)])
			if err != nil {
				t.Fatal(err)
			}
			at += n
		}
		if !bytes.Equal(got, content) {
			t.Error("what was read is not what was written")
		}
		client.Close()
		server.Close()
		all.Wait()
	})
}

func TestUnequalBuffers(t *testing.T) {
	for _, buffers := range [][2]int{{1, 1 << 20}, {1 << 20, 1}, {3, 7}, {1000, 1 << 20}, {1 << 20, 1000}} {
		client, server := pair(t, Options{})
		client.out.limit, client.in.limit = buffers[0], buffers[0]
		server.out.limit, server.in.limit = buffers[1], buffers[1]
		_, wait := carrying(t, client, server)
		text := strings.Repeat("abc", 3000)
		var writers sync.WaitGroup
		for _, c := range []*Conn{client, server} {
			writers.Go(func() { io.WriteString(c, text) })
		}
		mustRead(t, server, text)
		mustRead(t, client, text)
		writers.Wait()
		client.Close()
		server.Close()
		if a, b := wait(); a != nil || b != nil {
			t.Errorf("buffers %v: ended by %v and %v", buffers, a, b)
		}
	}
}

// TestBeats: a side that has no data to send still sends beats.
func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, Options{})
		if !client.Heard().IsZero() {
			t.Errorf("heard at %v before any carrier", client.Heard())
		}
		w, a, b := newWire(-1, false)
		var all sync.WaitGroup
		all.Go(func() { carryBoth(t, client, server, a, b, true) })
		for range 100 {
			time.Sleep(777 * time.Millisecond)
			synctest.Wait()
			for _, c := range []*Conn{client, server} {
				if silent := time.Since(c.Heard()); silent > defaultBeat {
					t.Errorf("silent for %v, with a beat of %v", silent, defaultBeat)
				}
			}
		}
		w.mu.Lock()
		w.budget, w.deaf = 0, true // the line is dead, but no error is reported
		w.mu.Unlock()
		last := client.Heard()
		time.Sleep(10 * time.Second)
		if !client.Heard().Equal(last) || !client.isCarried() {
			t.Errorf("heard at %v, %v after the last word", client.Heard(), client.Heard().Sub(last))
		}
		w.cut()
		all.Wait()
	})
}

// TestLastWord ends a stream on a carrier whose last message does not arrive. Both sides must end without an error
// after one beat.
func TestLastWord(t *testing.T) {
	for name, fails := range map[string]error{"silent": nil, "not to be told": io.ErrClosedPipe} {
		t.Run(name, inBubble(func(t *testing.T) {
			client, server := pair(t, Options{})
			a, b := net.Pipe()
			mute := &muted{ReadWriteCloser: b, err: fails}
			var clientErr, serverErr error
			var all sync.WaitGroup
			all.Go(func() { clientErr = client.Carry(t.Context(), a) })
			all.Go(func() { serverErr = server.Carry(t.Context(), mute) })
			client.Close()
			server.Close()
			begun := time.Now()
			all.Wait()
			if clientErr != nil || serverErr != nil {
				t.Errorf("ended by %v and %v", clientErr, serverErr)
			}
			if d := time.Since(begun); d != defaultBeat {
				t.Errorf("ended after %v, want a beat", d)
			}
		}))
	}
}

// muted is a carrier that drops the bye of this side, and may report an error.
type muted struct {
	io.ReadWriteCloser
	err error
}

func (m *muted) Write(p []byte) (int, error) {
	if bye := appendFrame(nil, kindBye, 0); bytes.HasSuffix(p, bye) {
		n, err := m.ReadWriteCloser.Write(p[:len(p)-len(bye)])
		return n + len(bye), cmp.Or(err, m.err)
	}
	return m.ReadWriteCloser.Write(p)
}

// Close does nothing, so that only the other side closes the carrier.
func (m *muted) Close() error { return nil }
