package agent

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// stream is one stream of a rank.
type stream struct {
	rank int32
	err  bool
}

// forwardOutput forwards the output of ranks from a contained agent. If that agent ends before the streams end,
// forwardOutput takes the rest from the log files.
func forwardOutput(c *contained, r *wire.OutputRequest, to wire.Agent_OutputServer) error {
	at := map[stream]int64{} // for each stream that has not ended, how many bytes have been sent
	for i, rank := range r.Ranks {
		at[stream{rank, false}], at[stream{rank, true}] = offset(r.Out, i), offset(r.Err, i)
	}
	from, err := c.client.Output(to.Context(), r)
	for err == nil {
		var reply *wire.OutputReply
		if reply, err = from.Recv(); err != nil {
			break
		}
		of := stream{reply.Rank, reply.Stderr}
		if at[of] += int64(len(reply.Data)); reply.End {
			delete(at, of)
		}
		if err := to.Send(reply); err != nil {
			return err
		}
	}
	if err == io.EOF {
		return nil
	}
	if to.Context().Err() != nil {
		return err
	}
	for of, begin := range at {
		if of.rank < 0 { // for the output of a launcher, only the sent part is known
			continue
		}
		if err := sendRest(c.logs, of, begin, to); err != nil {
			return err
		}
	}
	return nil
}

// offset returns the i-th offset, or 0 if there is none.
func offset(all []int64, i int) int64 {
	if i < len(all) {
		return all[i]
	}
	return 0
}

// sendRest sends the rest of a log file and the end of its stream.
func sendRest(dir string, of stream, begin int64, to wire.Agent_OutputServer) error {
	name := job.LogName(int(of.rank), map[bool]string{false: "out", true: "err"}[of.err])
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) { // the rank was never started
		return to.Send(&wire.OutputReply{Rank: of.rank, Stderr: of.err, End: true})
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(begin, io.SeekStart); err != nil {
		return err
	}
	for buffer := make([]byte, 32<<10); ; {
		n, err := f.Read(buffer)
		if err != nil && err != io.EOF {
			return err
		}
		if sendErr := to.Send(&wire.OutputReply{Rank: of.rank, Stderr: of.err, Data: buffer[:n], End: err == io.EOF}); sendErr != nil || err == io.EOF {
			return sendErr
		}
	}
}
