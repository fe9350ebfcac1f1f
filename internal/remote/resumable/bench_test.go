package resumable

import (
	"io"
	"net"
	"sync"
	"testing"
)

// carriers runs a benchmark over each kind of carrier.
func carriers(b *testing.B, run func(b *testing.B, dial func() (net.Conn, net.Conn))) {
	l, err := net.Listen("unix", b.TempDir()+"/s")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.Run("pipe", func(b *testing.B) { run(b, net.Pipe) })
	b.Run("socket", func(b *testing.B) {
		run(b, func() (net.Conn, net.Conn) { return sockets(b, l) })
	})
}

// both runs f over a plain carrier, and over a stream on such a carrier.
func both(b *testing.B, f func(b *testing.B, x, y net.Conn)) {
	carriers(b, func(b *testing.B, dial func() (net.Conn, net.Conn)) {
		b.Run("bare", func(b *testing.B) {
			x, y := dial()
			defer x.Close()
			defer y.Close()
			f(b, x, y)
		})
		b.Run("resumable", func(b *testing.B) {
			client, server := pair(b, Options{})
			x, y := dial()
			var over sync.WaitGroup
			over.Go(func() { carryBoth(b, client, server, x, y, false) })
			f(b, client, server)
			x.Close()
			over.Wait()
		})
	})
}

func BenchmarkThroughput(b *testing.B) {
	both(b, func(b *testing.B, x, y net.Conn) {
		p := make([]byte, 32<<10)
		b.SetBytes(int64(len(p)))
		var reading sync.WaitGroup
		reading.Go(func() {
			if _, err := io.CopyN(io.Discard, y, int64(b.N)*int64(len(p))); err != nil {
				b.Error(err)
			}
		})
		b.ResetTimer()
		for range b.N {
			if _, err := x.Write(p); err != nil {
				b.Fatal(err)
			}
		}
		reading.Wait()
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	both(b, func(b *testing.B, x, y net.Conn) {
		var echoing sync.WaitGroup
		echoing.Go(func() { io.CopyN(y, y, int64(b.N)*100) })
		p := make([]byte, 100)
		b.ResetTimer()
		for range b.N {
			if _, err := x.Write(p); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(x, p); err != nil {
				b.Fatal(err)
			}
		}
		echoing.Wait()
	})
}
