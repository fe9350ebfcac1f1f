package launcher

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

// runtimeRank stands where a rank does for what is no rank's: see wire.OutputRequest.
const runtimeRank = -1

// runtimeLog is the file of what mpirun says, or Open MPI's daemon of a host. A gang
// does not fail for want of it, and nothing waits where it cannot be written.
type runtimeLog struct {
	path  string
	file  *os.File // nil until the host has told of it
	size  int64    // bytes that have arrived, those for an earlier controller included
	whole bool     // nothing is missing
	err   error    // why nothing more is written
}

// find names the log of a host, at whose end goes on what an earlier controller has
// fetched.
func (r *runtimeLog) find(a job.Attempt, n *node) error {
	name := "daemon-" + n.agent.Host + ".log"
	if n.number == 0 {
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

// take writes what has come of it.
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

// fail writes no more.
func (r *runtimeLog) fail(err error, emit func(job.Event)) {
	r.err = err
	emit(job.Event{Time: time.Now(), Kind: job.KindNote, Text: fmt.Sprintf("what Open MPI says is not written any more: %v", err)})
}

// cut reports whether it breaks off, which nobody has told yet.
func (r *runtimeLog) cut() bool { return !r.whole && r.err == nil && r.size > 0 }

func (r *runtimeLog) close() {
	if r.file != nil {
		_ = r.file.Close()
	}
}
