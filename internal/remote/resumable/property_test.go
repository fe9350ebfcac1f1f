package resumable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the most time that a stream of a test may live.
const patience = 5 * time.Minute

// pair returns the two ends of a stream. They are aborted after patience.
func pair(t testing.TB, opts Options) (client, server *Conn) {
	opts.ID = NewID()
	client, server = New(opts), New(opts)
	limit := time.AfterFunc(patience, func() {
		late := fmt.Errorf("the stream has not ended after %v", patience)
		client.Abort(late)
		server.Abort(late)
	})
	t.Cleanup(func() {
		limit.Stop()
		client.Abort(nil)
		server.Abort(nil)
	})
	return client, server
}

// carryBoth carries a stream over the two ends of a carrier until both sides have returned. If accepting is true, the
// server accepts the carrier.
func carryBoth(t testing.TB, client, server *Conn, a, b io.ReadWriteCloser, accepting bool) (clientErr, serverErr error) {
	var wg sync.WaitGroup
	wg.Go(func() { clientErr = client.Carry(t.Context(), a) })
	wg.Go(func() { serverErr = serve(t, server, b, accepting) })
	wg.Wait()
	return clientErr, serverErr
}

func serve(t testing.TB, server *Conn, b io.ReadWriteCloser, accepting bool) error {
	if !accepting {
		return server.Carry(t.Context(), b)
	}
	p, err := Accept(t.Context(), b)
	if err != nil {
		return err
	}
	if p.ID() != server.ID() {
		t.Errorf("accepted stream %v, want %v", p.ID(), server.ID())
	}
	return server.CarryPending(t.Context(), p)
}

// TestNothingIsLostOrDoubled writes random data in both directions over carriers that break at random bytes.
func TestNothingIsLostOrDoubled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for i := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed+i), func(t *testing.T) { survive(t, seed+i, 60) })
	}
}

func FuzzNothingIsLostOrDoubled(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { survive(t, seed, 20) })
}

// survive uses one stream through a number of faults, and checks every byte that is read.
func survive(t *testing.T, seed uint64, faults int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	client, server := pair(t, Options{})
	// least is the smallest size of a buffer. If the other buffer were much larger, it would take too long to fill it.
	least := 1 << rng.IntN(13)
	for _, c := range []*Conn{client, server} {
		c.out.limit = least + rng.IntN(63*least+1)
		c.in.limit = c.out.limit
		c.beat = time.Duration(1+rng.IntN(20)) * time.Millisecond
	}
	size := min(1<<rng.IntN(18), 64*least) // the largest size of a write

	var stop atomic.Bool
	var writers, readers sync.WaitGroup
	totals := [2]chan int64{make(chan int64, 1), make(chan int64, 1)}
	ends := [2]*Conn{client, server}
	for i, c := range ends {
		writers.Go(func() { totals[i] <- scribble(t, c, seed+uint64(i), size, &stop) })
		readers.Go(func() { peruse(t, ends[1-i], seed+uint64(i), totals[i]) })
	}
	var carries sync.WaitGroup
	var wires []*wire
	for range faults {
		budget, deaf := 1+rng.IntN(1<<(4+rng.IntN(15))), rng.IntN(3) == 0
		w, a, b := newWire(budget, deaf)
		wires = append(wires, w)
		accepting := rng.IntN(2) == 0
		over := make(chan struct{})
		carries.Go(func() {
			defer close(over)
			clientErr, serverErr := carryBoth(t, client, server, a, b, accepting)
			for i, err := range []error{clientErr, serverErr} {
				if !ordinary(err) && !(err == nil && ends[i].hasEnded()) { // the carry may return after the last one
					t.Errorf("a carry ended by %v", err)
				}
			}
		})
		limit := time.NewTimer(time.Duration(rng.IntN(20)) * time.Millisecond)
		select {
		case <-w.struck:
		case <-over:
		case <-limit.C: // the stream may wait for the other side, so the test cuts the carrier now
			w.cut()
		}
		limit.Stop()
		if deaf && rng.IntN(2) == 0 {
			// The next carrier supersedes this one when both sides have used this one. Otherwise this one could
			// supersede the next carrier. A side that accepts sees which carrier is newer.
			<-w.way[0].spoken
			if !accepting {
				<-w.way[1].spoken
			}
			continue
		}
		w.cut()
		<-over
	}
	stop.Store(true)
	w, a, b := newWire(-1, false)
	var last sync.WaitGroup
	var errs [2]error
	last.Go(func() { errs[0], errs[1] = carryBoth(t, client, server, a, b, true) })
	readers.Wait()
	writers.Wait()
	client.Close()
	server.Close()
	last.Wait()
	for _, w := range append(wires, w) {
		w.cut() // a deaf wire may block an Accept, which otherwise only ctx would end
	}
	carries.Wait()
	if errs[0] != nil || errs[1] != nil {
		t.Errorf("the last carrier ended by %v and %v, want nil", errs[0], errs[1])
	}
}

// hasEnded reports whether the stream has ended without an error.
func (c *Conn) hasEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// ordinary reports whether err is an error of a carrier that was cut or superseded.
func ordinary(err error) bool {
	for _, want := range []error{errCut, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, ErrSuperseded} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

// scribble writes the random bytes of seed in pieces of random sizes until stop is true. It returns the number of
// bytes.
func scribble(t *testing.T, c *Conn, seed uint64, size int, stop *atomic.Bool) int64 {
	content, rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}), rand.New(rand.NewPCG(seed, 1))
	total := int64(0)
	for !stop.Load() {
		p := make([]byte, rng.IntN(size+1))
		content.Read(p)
		n, err := c.Write(p)
		total += int64(n)
		if err != nil || n != len(p) {
			t.Errorf("Write of %d bytes = %d, %v", len(p), n, err)
			break
		}
	}
	return total
}

// peruse reads as many bytes as were written, and checks each of them.
func peruse(t *testing.T, c *Conn, seed uint64, written <-chan int64) {
	content, rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}), rand.New(rand.NewPCG(seed, 2))
	got, total := int64(0), int64(-1)
	want := make([]byte, 1<<16)
	for {
		if total < 0 {
			select {
			case total = <-written:
			default:
			}
		}
		if got == total {
			return
		}
		p := make([]byte, 1+rng.IntN(1<<16))
		c.SetReadDeadline(time.Now().Add(5 * time.Millisecond)) // returns soon, to look for the total
		n, err := c.Read(p)
		if err != nil && !isTimeout(err) {
			t.Errorf("Read at byte %d: %v", got, err)
			return
		}
		content.Read(want[:n])
		if !bytes.Equal(p[:n], want[:n]) {
			t.Errorf("the %d bytes at %d are not those that were written", n, got)
			return
		}
		if got += int64(n); total >= 0 && got > total {
			t.Errorf("read %d bytes, where %d were written", got, total)
			return
		}
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
