// Package flightrecord reads the dumps of PyTorch's flight recorder, in which each rank has written down
// the collectives that it has called, and finds the ranks that are missing from one.
package flightrecord

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/gangrun/gangrun/checkpoint/pickle"
	"github.com/gangrun/gangrun/internal/job"
)

// Dump is what one rank has recorded.
type Dump struct {
	Rank    int // the global rank
	Version string
	Groups  map[string]Group // the process groups of the rank, by name
	Entries []Entry          // the newest calls, in their order
}

// Group is a process group, as one of its ranks sees it.
type Group struct {
	Desc  string // such as "default_pg" or "EXPERT_MODEL_PARALLEL_GROUP"
	Ranks []int  // global ranks
	// The sequence numbers of the newest collectives; -1 if there is none. LastStarted is also -1 unless
	// the recorder measures times.
	LastEnqueued, LastStarted, LastCompleted int64
}

// Entry is one call.
type Entry struct {
	Group      string // name of the process group
	Seq        int64  // of the collectives of the group
	Op         string // such as "nccl:all_reduce"
	State      string // "scheduled", "started" or "completed"
	PeerToPeer bool
	Retired    bool   // the watchdog waits for it no more; if it is not completed, it timed out
	In, Out    string // the sizes and types of its tensors, as text that can be compared
	InSize     int64  // how many numbers all input tensors have
	OutSize    int64
	Frames     []job.Frame // where the program called it, innermost first
}

// ErrFormat is the error for a dump that is not one of a flight recorder.
var ErrFormat = errors.New("not a dump of PyTorch's flight recorder")

// Parse reads the dump of a rank. It runs nothing of what is in the pickle. See the functions
// dump_nccl_trace and dump_entries of PyTorch for the format, of which versions 2.x are known.
func Parse(rank int, r io.Reader) (Dump, error) {
	var b pickle.Builder
	if err := pickle.Scan(bufio.NewReader(r), &b); err != nil {
		return Dump{}, err
	}
	root, ok := b.Result().(*pickle.Dict)
	if !ok {
		return Dump{}, ErrFormat
	}
	d := Dump{Rank: rank, Groups: map[string]Group{}}
	d.Version, _ = root.Get("version").(string)
	entries, ok := root.Get("entries").(*pickle.List)
	if !ok || d.Version == "" {
		return Dump{}, ErrFormat
	}
	status, _ := root.Get("pg_status").(*pickle.Dict)
	if config, ok := root.Get("pg_config").(*pickle.Dict); ok {
		for key, value := range config.All() {
			name := fmt.Sprint(key)
			if group, ok := value.(*pickle.Dict); ok {
				d.Groups[name] = parseGroup(group, status, key)
			}
		}
	}
	for _, item := range entries.Items {
		if e, ok := item.(*pickle.Dict); ok {
			d.Entries = append(d.Entries, parseEntry(e))
		}
	}
	return d, nil
}

var digits = regexp.MustCompile(`\d+`)

func parseGroup(config, status *pickle.Dict, key any) Group {
	g := Group{LastEnqueued: -1, LastStarted: -1, LastCompleted: -1}
	g.Desc, _ = config.Get("desc").(string)
	ranks, _ := config.Get("ranks").(string)
	for _, text := range digits.FindAllString(ranks, -1) {
		if rank, err := strconv.Atoi(text); err == nil {
			g.Ranks = append(g.Ranks, rank)
		}
	}
	if status == nil {
		return g
	}
	for name, value := range status.All() {
		if s, ok := value.(*pickle.Dict); ok && fmt.Sprint(name) == fmt.Sprint(key) {
			g.LastEnqueued = integer(s, "last_enqueued_collective", -1)
			g.LastStarted = integer(s, "last_started_collective", -1)
			g.LastCompleted = integer(s, "last_completed_collective", -1)
		}
	}
	return g
}

func parseEntry(d *pickle.Dict) Entry {
	e := Entry{Seq: integer(d, "collective_seq_id", -1)}
	if group, ok := d.Get("process_group").(pickle.Tuple); ok && len(group) > 0 {
		e.Group = fmt.Sprint(group[0])
	}
	e.Op, _ = d.Get("profiling_name").(string)
	e.State, _ = d.Get("state").(string)
	e.PeerToPeer, _ = d.Get("is_p2p").(bool)
	e.Retired, _ = d.Get("retired").(bool)
	e.In, e.InSize = tensors(d, "input")
	e.Out, e.OutSize = tensors(d, "output")
	frames, _ := d.Get("frames").(*pickle.List)
	if frames == nil {
		return e
	}
	for _, item := range frames.Items {
		if f, ok := item.(*pickle.Dict); ok {
			frame := job.Frame{Line: int(integer(f, "line", 0))}
			frame.Function, _ = f.Get("name").(string)
			frame.File, _ = f.Get("filename").(string)
			e.Frames = append(e.Frames, frame)
		}
	}
	return e
}

// integer returns a number of a dict, or another number if it has none with that name.
func integer(d *pickle.Dict, key string, other int64) int64 {
	if n, ok := d.Get(key).(int64); ok {
		return n
	}
	return other
}

// tensors returns the sizes and types of the tensors of a call as text, and how many numbers they have.
func tensors(d *pickle.Dict, side string) (text string, size int64) {
	sizes, _ := d.Get(side + "_sizes").(*pickle.List)
	types, _ := d.Get(side + "_dtypes").(*pickle.List)
	if sizes == nil {
		return "", 0
	}
	for i, item := range sizes.Items {
		n := int64(1)
		shape, _ := item.(*pickle.List)
		if shape == nil {
			continue
		}
		for _, length := range shape.Items {
			length, _ := length.(int64)
			n *= length
		}
		size += n
		text += fmt.Sprint(shape.Items)
		if types != nil && i < len(types.Items) {
			text += fmt.Sprint(" ", types.Items[i], " ")
		}
	}
	return text, size
}
