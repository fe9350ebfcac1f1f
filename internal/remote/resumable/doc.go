// Package resumable implements byte streams that live longer than the connections that carry them. A user such
// as gRPC sees one net.Conn for as long as the stream lives. Below the net.Conn, carriers, such as SSH sessions
// or unix sockets, may break and be replaced. When a carrier breaks, no byte is lost or doubled. Each side
// keeps what it wrote until the reader of its peer has consumed it. On a new carrier, each side says how much
// it has received, and the other side sends only the rest again.
//
// The side that makes carriers calls [Conn.Carry] for each of them, in a loop with back-off. The
// side that accepts carriers calls [Accept], which finds out to which stream a carrier belongs,
// and then [Conn.CarryPending] or [Pending.Refuse]. A Conn starts no goroutine of its own, and
// never gives up a silent carrier. The owner of the Conn does that: it looks at [Conn.Heard],
// and then ends the Carry or begins another one.
//
// # Carriers
//
// A carrier is any io.ReadWriteCloser that delivers its bytes complete and in order until it
// breaks. Its Close may be called during a Read and a Write. Close must return soon and make both
// return.
//
// # Protocol
//
// Each side sends a preamble of 9 bytes: "gangrun", 0 and the version. Frames follow: a byte for
// the kind, a big-endian 64-bit argument, and for some kinds a body. The first frame is a hello or
// a refusal. The preamble and the refusal are the same in all versions.
//
// An acknowledgement tells the writing side how many bytes the reader on the other side has
// consumed, not how many have arrived. The end of the stream counts as one more byte. When the
// acknowledgement arrives, the writing side frees its copy of those bytes. This also controls the
// flow of data: however slow a reader is, each side needs no more memory than its buffer.
package resumable
