package resumable

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
)

// FuzzRubbish lets a peer send random data, with or without a valid hello first. Carry must return an error. It must
// not panic, or use more memory than a buffer.
func FuzzRubbish(f *testing.F) {
	frames := appendFrame(nil, kindBeat, 0)
	frames = appendFrame(frames, kindAck, 3)
	frames = append(appendFrame(frames, kindData, 5), "hello"...)
	frames = appendFrame(frames, kindEnd, 5)
	f.Add([]byte{}, true)
	f.Add(frames, true)
	f.Add(append(bytes.Clone(frames), appendFrame(nil, kindBye, 0)...), true)
	f.Add(append(appendFrame(nil, kindData, dataBytes), make([]byte, dataBytes)...), true)
	f.Add(appendFrame(nil, kindData, 1<<63), true)
	f.Add(appendFrame(nil, kindAck, 1<<63), true)
	f.Add(appendFrame(nil, kindAck, 6), true)
	f.Add(appendFrame(nil, kindRefuse, 1<<40), true)
	f.Add(appendRefusal(nil, &Refused{Reason: ErrVersion, Text: "no"}), true)
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"), false)
	f.Add(appendRefusal([]byte(preamble), &Refused{Reason: ErrSuperseded, Text: "no"}), false)
	f.Add(append(appendHello([]byte(preamble), hello{instance: 1, generation: 1, buffer: 1}), frames...), false)
	f.Add(append(appendHello([]byte(preamble), hello{instance: 1, generation: 1, buffer: 1 << 63, received: 1 << 62}), frames...), false)
	f.Fuzz(func(t *testing.T, says []byte, met bool) {
		const buffer = 1000
		c := New(Options{Buffer: buffer})
		c.Write([]byte("six by"))
		if met {
			says = append(appendHello([]byte(preamble), hello{instance: 1, generation: 1, buffer: buffer}), says...)
		}
		err := c.Carry(t.Context(), &speech{Reader: bytes.NewReader(says)})
		if err == nil {
			t.Error("a stream that was not closed has ended in order")
		}
		if cap(c.in.ring) > buffer || c.in.len() > buffer || c.out.len() > 6 {
			t.Errorf("%d bytes in %d are held, %d kept", c.in.len(), cap(c.in.ring), c.out.len())
		}
		if _, err := c.Write([]byte("on it goes")); err != nil {
			t.Errorf("the stream was harmed: %v", err)
		}
	})
}

// speech is a carrier with fixed data to read, which ignores what is written to it.
type speech struct{ io.Reader }

func (*speech) Write(p []byte) (int, error) { return len(p), nil }
func (*speech) Close() error                { return nil }

// FuzzHello checks that a hello can be read again after it was written, but not if it is cut short.
func FuzzHello(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), uint64(1), uint64(0), uint64(1), uint64(0), uint64(0), uint64(1), uint(0))
	f.Add([]byte("0123456789abcdef"), uint64(1<<63), uint64(7), uint64(3), uint64(99), uint64(98), uint64(1<<22), uint(80))
	f.Fuzz(func(t *testing.T, id []byte, instance, known, generation, received, consumed, buffer uint64, short uint) {
		want := hello{instance: instance, known: known, generation: generation, received: received, consumed: consumed, buffer: buffer}
		copy(want.id[:], id)
		b := appendHello([]byte(preamble), want)
		got, err := readHello(bufio.NewReader(bytes.NewReader(b)))
		if valid := instance != 0 && generation != 0 && buffer != 0; valid != (err == nil) || valid && got != want {
			t.Errorf("read %+v, %v; want %+v", got, err, want)
		}
		part := b[:short%uint(len(b))]
		_, err = readHello(bufio.NewReader(bytes.NewReader(part)))
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the first %d bytes of %d are read with %v", len(part), len(b), err)
		}
	})
}
