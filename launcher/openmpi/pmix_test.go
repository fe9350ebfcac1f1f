package openmpi

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

// Recorded messages between a rank of Open MPI 4.1.4 with PMIx 4.2.2 and its server.
const (
	handshake = "ffffffffffffffff36000000000000006e617469766500000000080000000000000000003735353536343534350000000001342e322e32726332007634310001647332310000"
	welcome   = "0000000000000001"
	request   = "000000010000006500000002000000000200"
	granted   = "000000000000006500000002000000000200"
	fence     = "000000010000006b000000290000000002030201021437353535363435343500feffffff0f0201021a706d69782e636f6c6c65637400000101"
	passed    = "000000000000006b00000002000000000200"
	finalize  = "000000010000006f0000000200000000020e00000001000000700000000800000000020e02ffffffff0f00000001000000710000000500000000020e02a502000000010000007200000002000000000205"
	abort7    = "000000000000006e0000000c000000000201020e02084e2f41000200"
)

// The same messages in the form of PMIx 3, whose numbers have four bytes.
const (
	oldRequest  = "000000010000006500000005000000000000000100"
	oldFinalize = "000000010000006600000005000000000000000105"
	oldAbort    = "00000001000000670000001500000000" + "0000000101" + "00000001" + "ffffffff" + "00000001" + "00000000"
)

func unhex(t testing.TB, texts ...string) []byte {
	t.Helper()
	data, err := hex.DecodeString(strings.Join(texts, ""))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestPMIx(t *testing.T) {
	for _, c := range []struct {
		name           string
		client, server string
		want           PMIxState
	}{
		{name: "nothing yet"},
		{name: "handshake", client: handshake, server: welcome},
		{name: "in a fence", client: handshake + request + fence, server: welcome + granted, want: PMIxState{Waiting: true}},
		{name: "past a fence", client: handshake + request + fence, server: welcome + granted + passed, want: PMIxState{Passed: true}},
		{name: "finalized", client: handshake + request + fence + finalize, server: welcome + granted + passed, want: PMIxState{Passed: true, Finalized: true}},
		{name: "aborted", client: handshake + request + abort7, server: welcome + granted, want: PMIxState{Aborted: true, Code: 7}},
		{name: "old, finalized", client: handshake + oldRequest + oldFinalize, server: welcome, want: PMIxState{Finalized: true}},
		{name: "old, aborted", client: handshake + oldRequest + oldAbort, server: welcome, want: PMIxState{Aborted: true, Code: -1}},
		{name: "refused", client: handshake, server: "ffffffe2" + "00000000", want: PMIxState{Opaque: true}},
		{name: "another first word", client: handshake + finalize, server: welcome, want: PMIxState{Opaque: true}},
		{name: "described types", client: handshake + "00000001000000650000000700000000" + "00090000000100", server: welcome, want: PMIxState{Opaque: true}},
		{name: "rubbish", client: "474554202f20485454502f312e310d0a486f73743a20780d0a0d0a", want: PMIxState{Opaque: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := unhex(t, c.client), unhex(t, c.server)
			for _, size := range []int{1, 3, 16, 1 << 20} {
				var p PMIx
				for part := range slices.Chunk(client, size) {
					p.Client(part)
				}
				for part := range slices.Chunk(server, size) {
					p.Server(part)
				}
				if got := p.State(); got != c.want {
					t.Errorf("in parts of %d bytes: %+v, want %+v", size, got, c.want)
				}
			}
		})
	}
}

// TestPMIxTexts reads a help text that Open MPI asks its server to print.
func TestPMIxTexts(t *testing.T) {
	text := strings.Repeat("-", 74) + "\nMPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 7.\n"
	body := slices.Concat(unhex(t, "021002000201021a706d69782e6c6f672e6d736700021bc803000000010000001168656c702d6d70692d6170692e74787400000000010000000a6d70692d61626f72740000000001010000000100000190"), []byte(text), []byte{0})
	header := slices.Concat(unhex(t, "000000000000006d"), []byte{0, 0, byte(len(body) >> 8), byte(len(body))}, make([]byte, 4))
	var p PMIx
	if texts := p.Client(unhex(t, handshake, request)); len(texts) > 0 {
		t.Errorf("texts before any was said: %q", texts)
	}
	if texts := p.Client(slices.Concat(header, body)); !slices.Equal(texts, []string{text}) {
		t.Errorf("got %q, want %q", texts, text)
	}
}

// TestPMIxTextStart checks that no byte of the size of a text becomes part of the text.
func TestPMIxTextStart(t *testing.T) {
	for size := 4; size < 5000; size++ {
		text := []byte("[h1:1] *** An error occurred in MPI_Recv\n\n"[:min(size-1, 40)])
		text = append(text, bytes.Repeat([]byte{'x'}, size-1-len(text))...)
		text[size-2], text[size-3] = '\n', '\n'
		four := binary.BigEndian.AppendUint32([]byte("help.txt\x00\x00\x00\x01"), uint32(size))
		few := binary.AppendUvarint([]byte("help.txt\x00\x02\x01"), 2*uint64(size))
		for name, head := range map[string][]byte{"four bytes": four, "as many as needed": few} {
			if got := printable(slices.Concat(head, text, []byte{0, 1, 2})); got != string(text) {
				t.Fatalf("%d bytes, the size in %s: got %q, want %q", size, name, got, text)
			}
		}
	}
}

// TestPMIxLong checks a message of which only the beginning is kept. The next message must be read.
func TestPMIxLong(t *testing.T) {
	for _, size := range []int{0x100, 0x10000, 3 << 20} {
		var p PMIx
		p.Client(unhex(t, handshake, request))
		p.Client([]byte{0, 0, 0, 1, 0, 0, 0, 9, byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size), 0, 0, 0, 0})
		p.Client(append([]byte{2, 2}, bytes.Repeat([]byte{'x'}, size-2)...))
		p.Client(unhex(t, finalize))
		if got, want := p.State(), (PMIxState{Finalized: true}); got != want {
			t.Errorf("after a message of %d bytes: %+v, want %+v", size, got, want)
		}
		if cap(p.client.held) > 2*maxFrame {
			t.Errorf("%d bytes are held", cap(p.client.held))
		}
	}
}

func FuzzPMIx(f *testing.F) {
	f.Add(unhex(f, handshake, request, fence, finalize), unhex(f, welcome, granted, passed), 7)
	f.Add(unhex(f, handshake, oldRequest, oldAbort), unhex(f, welcome), 1)
	f.Fuzz(func(t *testing.T, client, server []byte, size int) {
		if size < 1 || size > 1<<16 {
			size = 1
		}
		var whole, parts PMIx
		want := whole.Client(client)
		whole.Server(server)
		var got []string
		for part := range slices.Chunk(client, size) {
			got = append(got, parts.Client(part)...)
		}
		for part := range slices.Chunk(server, size) {
			parts.Server(part)
		}
		if whole.State() != parts.State() || !slices.Equal(got, want) {
			t.Errorf("whole %+v %q, in parts of %d %+v %q", whole.State(), want, size, parts.State(), got)
		}
	})
}
