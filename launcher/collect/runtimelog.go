package collect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/internal/wire"
)

// runtimeRank is the rank number that stands for mpirun or for a daemon of Open MPI. See wire.OutputRequest.
const runtimeRank = -1

// runtimeLog is the log file of mpirun, or of Open MPI's daemon on a host. A gang does not fail if
// this log is incomplete, and nothing waits if it cannot be written.
type runtimeLog struct {
	path  string
	file  *os.File // nil until a part of the log has arrived
	size  int64    // bytes that have arrived, including bytes that an earlier controller has received
	whole bool     // no byte is missing
	err   error    // why no more is written to the log
}

// find sets the path and size of a host's log. An earlier controller may have fetched a part.
func (r *runtimeLog) find(a job.Attempt, from Source) error {
	name := "daemon-" + from.Agent.Host + ".log"
	if from.Number == 0 {
		name = "mpirun.log"
	}
	r.path = filepath.Join(a.LogDir, name)
	file, err := safefile.OpenFile(r.path, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r.file = file
	r.size, err = file.Seek(0, io.SeekEnd)
	return err
}

// take writes a piece to the log.
func (r *runtimeLog) take(reply *wire.OutputReply, emit func(job.Event)) {
	if r.err != nil {
		return
	}
	if err := r.write(reply.Data); err != nil {
		r.fail(err, emit)
		return
	}
	r.whole = r.whole || reply.End
}

func (r *runtimeLog) write(piece []byte) (err error) {
	if r.file == nil {
		if r.file, err = safefile.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
			return err
		}
	}
	n, err := r.file.Write(piece)
	r.size += int64(n)
	return err
}

// fail stops the writing of the log, with a note.
func (r *runtimeLog) fail(err error, emit func(job.Event)) {
	r.err = err
	emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: fmt.Sprintf("what Open MPI says is not written any more: %v", err)})
}

// truncated reports whether a part of the log is missing and no note has said so.
func (r *runtimeLog) truncated() bool { return !r.whole && r.err == nil && r.size > 0 }

func (r *runtimeLog) close() {
	if r.file != nil {
		_ = r.file.Close()
	}
}
