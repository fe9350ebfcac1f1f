// Package flightrecord reads dumps of PyTorch's flight recorder, which records the collectives that a rank
// has called. It finds the ranks that are missing from a collective.
package flightrecord

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/checkpoint/pickle"
	"github.com/gangrun/gangrun/internal/job"
)

// ErrFormat is the error for a file that is not a dump of a flight recorder.
var ErrFormat = errors.New("not a dump of PyTorch's flight recorder")

// Parse reads the dump of a rank, and returns the part that Brief keeps. It runs no code that the pickle
// names. It knows versions 2.x of the format, which the functions dump_nccl_trace and dump_entries of PyTorch
// define.
func Parse(rank int, r io.Reader) (job.FlightRecord, error) {
	var b pickle.Builder
	if err := pickle.Scan(bufio.NewReader(r), &b); err != nil {
		return job.FlightRecord{}, err
	}
	root, ok := b.Result().(*pickle.Dict)
	if !ok {
		return job.FlightRecord{}, ErrFormat
	}
	d := job.FlightRecord{Rank: rank, Groups: map[string]job.ProcessGroup{}}
	d.Version, _ = root.Get("version").(string)
	entries, ok := root.Get("entries").(*pickle.List)
	if !ok || d.Version == "" {
		return job.FlightRecord{}, ErrFormat
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
			d.Calls = append(d.Calls, parseCall(e))
		}
	}
	return Brief(d), nil
}

func parseGroup(config, status *pickle.Dict, key any) job.ProcessGroup {
	g := job.ProcessGroup{LastEnqueued: -1, LastStarted: -1, LastCompleted: -1}
	g.Desc, _ = config.Get("desc").(string)
	ranks, _ := config.Get("ranks").(string)
	for _, text := range strings.FieldsFunc(ranks, func(r rune) bool { return r < '0' || r > '9' }) {
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

func parseCall(d *pickle.Dict) job.CollectiveCall {
	e := job.CollectiveCall{Seq: integer(d, "collective_seq_id", -1)}
	if group, ok := d.Get("process_group").(pickle.Tuple); ok && len(group) > 0 {
		e.Group = fmt.Sprint(group[0])
	}
	e.Op, _ = d.Get("profiling_name").(string)
	e.State, _ = d.Get("state").(string)
	e.PeerToPeer, _ = d.Get("is_p2p").(bool)
	e.Retired, _ = d.Get("retired").(bool)
	e.In, e.InSize = tensors(d, "input")
	e.Out, e.OutSize = tensors(d, "output")
	e.Where = where(d)
	return e
}

// library reports whether a source file belongs to PyTorch or to Python itself.
func library(file string) bool {
	return file == "" || strings.HasPrefix(file, "<") || strings.Contains(file, "/torch/") || strings.HasPrefix(path.Base(path.Dir(file)), "python3")
}

// where returns the innermost function of the user's program on the stack of a call.
func where(d *pickle.Dict) string {
	frames, _ := d.Get("frames").(*pickle.List)
	if frames == nil {
		return ""
	}
	for _, item := range frames.Items {
		f, ok := item.(*pickle.Dict)
		if !ok {
			continue
		}
		name, _ := f.Get("name").(string)
		file, _ := f.Get("filename").(string)
		if !library(file) {
			return fmt.Sprintf("%s:%d %s", path.Base(file), integer(f, "line", 0), name)
		}
	}
	return ""
}

// integer returns the number at key. It returns other if there is no number.
func integer(d *pickle.Dict, key string, other int64) int64 {
	if n, ok := d.Get(key).(int64); ok {
		return n
	}
	return other
}

// tensors returns the sizes and types of the tensors of a call as text, and the number of elements that they have
// together.
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
	return short(strings.TrimRight(text, " ")), size
}

// maxTensors limits the text about tensors, in bytes.
const maxTensors = 100

// short shortens a text about tensors if it is too long. Different texts remain different.
func short(text string) string {
	if len(text) <= maxTensors {
		return text
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, text)
	return fmt.Sprintf("%s... #%x", text[:maxTensors], h.Sum64())
}
