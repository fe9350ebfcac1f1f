package gang

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/stacks"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/flightrecord"
	"github.com/gangrun/gangrun/internal/wire"
)

// The variables of PyTorch's flight recorder. PyTorch 2.9 has given most of them new names, and still accepts the old
// names.
const (
	bufferVariable     = "TORCH_FR_BUFFER_SIZE" // number of calls to keep; 0, the default before, means none
	oldBufferVariable  = "TORCH_NCCL_TRACE_BUFFER_SIZE"
	dumpVariable       = "TORCH_FR_DUMP_TEMP_FILE" // a dump has this path with the number of the rank at its end
	oldDumpVariable    = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"
	pipeVariable       = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE" // the FIFO has this path with the number of the rank and ".pipe"
	onTimeoutVariable  = "TORCH_NCCL_DUMP_ON_TIMEOUT"      // if unset, PyTorch looks at the FIFO only every 8 minutes
	flightRecorderSize = "2000"                            // the default of the newest PyTorch
)

// dumpPrefix is the beginning of the name of a dump. The number of the rank follows. PyTorch itself uses this name.
const dumpPrefix = "comm_lib_trace_rank_"

// flight is the flight recorder of a rank.
type flight struct {
	stacks.Flight
	ownDump, ownPipe bool // the path is beside the logs of the rank, and was not chosen by the user
}

// offerFlightRecorder makes PyTorch record the collectives of the rank, and store its dumps beside the logs, unless the
// rank's environment says otherwise. With --faulthandler, PyTorch also makes a FIFO, through which gangrun asks for a
// dump when the gang hangs. Without --faulthandler, PyTorch makes no FIFO, because PyTorch ends a program that cannot
// make it, such as a program that another host starts with the same environment.
func (c *Command) offerFlightRecorder(start *wire.Start) error {
	logs, err := filepath.Abs(string(start.LogDir))
	if err != nil {
		return err
	}
	number := strconv.Itoa(c.Rank.number)
	c.offer(flightRecorderSize, bufferVariable, oldBufferVariable)
	dump, ownDump := c.offer(filepath.Join(logs, dumpPrefix), dumpVariable, oldDumpVariable)
	c.Rank.flight = flight{Flight: stacks.Flight{Dump: c.absolute(dump + number)}, ownDump: ownDump}
	pipe := environ.Lookup(c.Env, pipeVariable)
	if own := filepath.Join(logs, dumpPrefix); pipe == "" && start.Faulthandler && holdsFIFO(own+number+".pipe") {
		pipe, c.Rank.flight.ownPipe = c.offer(own, pipeVariable)
		c.offer("1", onTimeoutVariable)
	}
	if pipe != "" {
		c.Rank.flight.Pipe = c.absolute(pipe + number + ".pipe")
	}
	return nil
}

// offer sets variables to a value, unless one of them is set already. It returns the value that the variables then
// have, and whether that is the offered value.
func (c *Command) offer(value string, names ...string) (string, bool) {
	for _, name := range names {
		if set := environ.Lookup(c.Env, name); set != "" {
			return set, false
		}
	}
	for _, name := range names {
		c.hint(name + "=" + value)
	}
	return value, true
}

// absolute returns the absolute form of a path that the program uses.
func (c *Command) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Dir, path)
}

// holdsFIFO reports whether the file system can hold a FIFO at path.
func holdsFIFO(path string) bool { return unix.Mkfifo(path, 0o600) == nil && os.Remove(path) == nil }

// flightTime limits the time for reading the dumps of the ranks at the end of a gang. A dump of 2,000 calls takes about
// 0.2 s.
const flightTime = 3 * time.Second

// reportFlight reports what the flight recorders of the ranks have recorded, if a rank has failed. It ignores dumps at
// paths that the user has chosen, because an earlier job may have written them.
func (g *Gang) reportFlight() {
	failed := func(r *Rank) bool {
		child := r.child.Load()
		return child != nil && child.Ended() && child.Status != 0
	}
	if !slices.ContainsFunc(g.ranks, failed) {
		return
	}
	until := time.Now().Add(flightTime)
	for _, r := range g.ranks {
		if !r.flight.ownDump || time.Now().After(until) {
			continue
		}
		if record := stacks.ReadDump(r.number, r.flight.Dump); record != nil {
			g.Reports.Lines(flightrecord.Line(*record, g.Host, r.flight.Dump))
		}
	}
}

// remove removes the FIFO that PyTorch has made for gangrun.
func (f flight) remove() {
	if f.ownPipe {
		_ = os.Remove(f.Pipe)
	}
}
