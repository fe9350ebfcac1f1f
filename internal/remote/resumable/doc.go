// Package resumable is one byte stream each way that outlives the connections
// that carry it. What is above it (gRPC) sees one net.Conn for as long as the
// stream lives; beneath it carriers (an SSH session, a unix socket) come, break
// and are replaced. Nothing is lost or doubled wherever a carrier is cut: each
// side keeps what it wrote until the peer's reader has taken it, and on a new
// carrier both say how much they received, so that only the rest is sent again.
//
// The side that makes carriers calls [Conn.Carry] for each of them, in a loop
// with back-off. The side that is given carriers calls [Accept] to learn whose
// carrier it is, and then [Conn.CarryPending] or [Pending.Refuse]. A Conn starts
// no goroutine of its own and needs no clock but for beats and deadlines: it
// never gives a silent carrier up by itself. Its owner does, who looks at
// [Conn.Heard] and ends the Carry or begins another.
//
// # Carriers
//
// A carrier is any io.ReadWriteCloser whose bytes arrive whole and in order
// until it breaks. Its Close may be called while a Read and a Write are under
// way; it must return soon, and must make both return.
//
// # On the carrier
//
// Each side sends a preamble of 9 bytes, "gangrun", 0 and the version, and then
// frames: a byte that says the kind, a big-endian 64-bit argument, and for some
// kinds a body. The first frame is a hello or a refusal; preamble and refusal
// stay as they are in all versions. An acknowledgement counts what the peer's
// reader consumed (not what arrived), and the end of the stream as one byte
// more: it frees the writer's copy and is the flow control as well, so that a
// slow reader costs each side one buffer and no more.
package resumable
