package gang

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/stacks"
	"github.com/gangrun/gangrun/internal/wire"
)

// TestOfferFlightRecorder checks which variables of the flight recorder gangrun sets, and that it does not change
// those that the user has set.
func TestOfferFlightRecorder(t *testing.T) {
	dir := t.TempDir()
	prefix := filepath.Join(dir, "comm_lib_trace_rank_")
	buffer := []string{"TORCH_FR_BUFFER_SIZE=2000", "TORCH_NCCL_TRACE_BUFFER_SIZE=2000"}
	dump := []string{"TORCH_FR_DUMP_TEMP_FILE=" + prefix, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=" + prefix}
	pipe := []string{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=" + prefix, "TORCH_NCCL_DUMP_ON_TIMEOUT=1"}
	for _, c := range []struct {
		name         string
		env          []string
		logs         string
		faulthandler bool
		want         []string // the variables that gangrun sets
		flight       flight
	}{
		{name: "nothing is set", logs: dir, want: slices.Concat(buffer, dump), flight: flight{Flight: stacks.Flight{Dump: prefix + "3"}, ownDump: true}},
		{name: "--faulthandler", logs: dir, faulthandler: true, want: slices.Concat(buffer, dump, pipe),
			flight: flight{Flight: stacks.Flight{Pipe: prefix + "3.pipe", Dump: prefix + "3"}, ownDump: true, ownPipe: true}},
		{name: "it is off, by an old name", env: []string{"TORCH_NCCL_TRACE_BUFFER_SIZE=0"}, logs: dir, want: dump, flight: flight{Flight: stacks.Flight{Dump: prefix + "3"}, ownDump: true}},
		{name: "paths of the user's", env: []string{"TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/tmp/d_", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=p_"}, logs: dir, faulthandler: true, want: buffer,
			flight: flight{Flight: stacks.Flight{Pipe: "/work/p_3.pipe", Dump: "/tmp/d_3"}}},
		{name: "no FIFO can be made", logs: filepath.Join(dir, "absent"), faulthandler: true,
			want:   append(slices.Clone(buffer), "TORCH_FR_DUMP_TEMP_FILE="+dir+"/absent/comm_lib_trace_rank_", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE="+dir+"/absent/comm_lib_trace_rank_"),
			flight: flight{Flight: stacks.Flight{Dump: dir + "/absent/comm_lib_trace_rank_3"}, ownDump: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := &Command{Rank: &Rank{number: 3}, Dir: "/work", Env: slices.Clone(c.env)}
			if err := command.offerFlightRecorder(&wire.Start{LogDir: []byte(c.logs), Faulthandler: c.faulthandler}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(command.Hints, c.want) || !slices.Equal(command.Env, append(slices.Clone(c.env), c.want...)) {
				t.Errorf("set %q of the environment %q, want %q", command.Hints, command.Env, c.want)
			}
			if command.Rank.flight != c.flight {
				t.Errorf("got %+v, want %+v", command.Rank.flight, c.flight)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); left != nil {
				t.Errorf("left %q", left)
			}
		})
	}
}
