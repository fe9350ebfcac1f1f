package gpuwatch

import (
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

// attempt returns the GPUs of a gang on this machine. Each argument names the GPUs of one rank.
func attempt(devices ...string) gangGPUs {
	h := job.Host{Name: "here"}
	a := job.Attempt{}
	for i, own := range devices {
		for _, uuid := range strings.Fields(own) {
			h.Devices = append(h.Devices, job.Device{UUID: uuid, Index: len(h.Devices)})
		}
		a.Placement.Ranks = append(a.Placement.Ranks, job.Rank{Rank: i, Host: h.Name, LocalRank: i, Devices: strings.Fields(own)})
	}
	a.Placement.Hosts = []job.Host{h}
	return gpusOn(a.Placement, h)
}

func TestMixup(t *testing.T) {
	four := attempt("GPU-a", "GPU-b", "GPU-c", "GPU-d")
	pairs := attempt("GPU-a GPU-b", "GPU-c GPU-d")
	const own = `call torch.cuda.set_device(int(os.environ["LOCAL_RANK"])) before the program first uses CUDA, or run with --gpu-visibility rank`
	for name, c := range map[string]struct {
		gpus gangGPUs
		use  map[string][]int
		want mixup
		says string // "" if nothing must be reported
	}{
		"nothing is used":        {gpus: four},
		"each its own":           {gpus: four, use: map[string][]int{"GPU-a": {0}, "GPU-b": {1}, "GPU-c": {2}, "GPU-d": {3}}},
		"some have not begun":    {gpus: four, use: map[string][]int{"GPU-a": {0}}},
		"turned":                 {gpus: four, use: map[string][]int{"GPU-a": {3}, "GPU-b": {2}, "GPU-c": {1}, "GPU-d": {0}}},
		"contexts on the first":  {gpus: four, use: map[string][]int{"GPU-a": {0, 1, 2, 3}, "GPU-b": {1}, "GPU-c": {2}, "GPU-d": {3}}},
		"one alone on another's": {gpus: four, use: map[string][]int{"GPU-a": {1}}},
		"all on the first": {four, map[string][]int{"GPU-a": {2, 0, 1, 3}}, mixup{"GPU-a", []int{0, 1, 2, 3}, []int{1, 2, 3}},
			"GPU0 (rank 0) is used by ranks 0, 1, 2, 3; ranks 1, 2, 3 do not use their own (GPU1, GPU2, GPU3): " + own},
		"one of them": {four, map[string][]int{"GPU-a": {0}, "GPU-b": {1, 2}, "GPU-d": {3}}, mixup{"GPU-b", []int{1, 2}, []int{2}},
			"GPU1 (rank 1) is used by ranks 1, 2; rank 2 does not use its own (GPU2): " + own},
		"halves": {four, map[string][]int{"GPU-a": {0, 1}, "GPU-b": {2, 3}}, mixup{"GPU-a", []int{0, 1}, []int{1}},
			"GPU0 (rank 0) is used by ranks 0, 1; rank 1 does not use its own (GPU1): " + own},
		"both stray": {four, map[string][]int{"GPU-d": {1, 2}}, mixup{"GPU-d", []int{1, 2}, []int{1, 2}},
			"GPU3 (rank 3) is used by ranks 1, 2; ranks 1, 2 do not use their own (GPU1, GPU2): " + own},
		"pairs, each one of its own": {gpus: pairs, use: map[string][]int{"GPU-b": {0}, "GPU-c": {1}}},
		"pairs, overlapping":         {gpus: pairs, use: map[string][]int{"GPU-a": {0}, "GPU-b": {0, 1}, "GPU-c": {1}}},
		"pairs, LOCAL_RANK alone": {pairs, map[string][]int{"GPU-a": {0}, "GPU-b": {0, 1}}, mixup{"GPU-b", []int{0, 1}, []int{1}},
			`GPU1 (rank 0) is used by ranks 0, 1; rank 1 does not use its own (GPU2, GPU3): call torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) * 2) before the program first uses CUDA, or run with --gpu-visibility rank`},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.gpus.mixup(c.use)
			if !reflect.DeepEqual(got, c.want) {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
			if got.uuid != "" {
				if says := c.gpus.mixupText(got); says != c.says {
					t.Errorf("says  %q\nwants %q", says, c.says)
				}
			}
		})
	}
}

// TestSharing simulates rounds. Process 10 is rank 0, and process 20 is rank 1. Processes 21 and 22 descend from
// process 20. Process 99 belongs to no rank.
func TestSharing(t *testing.T) {
	parents := map[int]int{10: 2, 20: 2, 21: 20, 22: 21, 99: 1, 2: 1, 50: 51, 51: 50}
	const all = "GPU-a=10 GPU-a=22" // both ranks use the first GPU
	for name, c := range map[string]struct {
		rounds []string // "GPU=PID" for each process
		at     int      // the round in which the sharing is reported; -1 means never
	}{
		"twice":                    {[]string{all, all, all, all}, 1},
		"once":                     {[]string{all, "GPU-a=10 GPU-b=22", all, "", all}, -1},
		"later":                    {[]string{"", "GPU-a=10", all, all}, 3},
		"of another program":       {[]string{"GPU-a=10 GPU-a=99", "GPU-a=10 GPU-a=99"}, -1},
		"two of one rank":          {[]string{"GPU-b=20 GPU-b=21 GPU-b=22", "GPU-b=20 GPU-b=21 GPU-b=22"}, -1},
		"with its own":             {[]string{all + " GPU-b=21", all + " GPU-b=20"}, -1},
		"a parent that turns":      {[]string{"GPU-a=10 GPU-a=50", "GPU-a=10 GPU-a=50"}, -1},
		"another GPU the 2nd time": {[]string{all, "GPU-b=10 GPU-b=20", "GPU-b=10 GPU-b=20"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			use := newSharing(attempt("GPU-a", "GPU-b"))
			use.seeAll, use.name = true, func(int) string { return "" }
			use.parent = func(pid int) int { return parents[pid] }
			use.started(job.Event{Kind: job.KindStarted, Host: "here", Rank: 0, PID: 10})
			use.started(job.Event{Kind: job.KindStarted, Host: "here", Rank: 1, PID: 20})
			use.started(job.Event{Kind: job.KindStarted, Host: "elsewhere", Rank: 2, PID: 99})
			use.started(job.Event{Kind: job.KindHost, Host: "here", PID: 99})
			reported := []int{}
			var events []job.Event
			r := &reporter{gpus: use.gpus, attempt: 3, sharing: use, emit: func(e job.Event) { events = append(events, e) }}
			for i, round := range c.rounds {
				for _, word := range strings.Fields(round) {
					uuid, text, _ := strings.Cut(word, "=")
					pid, err := strconv.Atoi(text)
					if err != nil {
						t.Fatal(err)
					}
					r.event(nvml.Event{Kind: nvml.EventProcess, UUID: uuid, PID: pid})
				}
				r.event(nvml.Event{Time: time.Unix(int64(i), 0), Kind: nvml.EventLooked})
				if len(events) > len(reported) {
					reported = append(reported, i)
				}
			}
			r.close()
			switch {
			case c.at < 0 && len(events) > 0:
				t.Errorf("reported in round %v: %+v", reported, events)
			case c.at >= 0 && (len(reported) != 1 || reported[0] != c.at || len(events) != 1):
				t.Errorf("reported in rounds %v, want in %d: %+v", reported, c.at, events)
			case c.at >= 0:
				if e := events[0]; e.Kind != job.KindGPU || e.Attempt != 3 || e.Host != "here" || e.GPU.Sign != job.GPUShared || !reflect.DeepEqual(e.GPU.Ranks, []int{0, 1}) || e.Time.IsZero() {
					t.Errorf("%+v, %+v", e, e.GPU)
				}
			}
		})
	}
}

// TestNotShared checks that processes are ignored if each rank sees only its own GPUs.
func TestNotShared(t *testing.T) {
	r := &reporter{gpus: attempt("GPU-a", "GPU-b"), emit: func(e job.Event) { t.Errorf("%+v", e) }}
	for range 3 {
		r.event(nvml.Event{Kind: nvml.EventProcess, UUID: "GPU-a", PID: os.Getpid()})
		r.event(nvml.Event{Kind: nvml.EventLooked})
	}
	r.close()
}

func TestParentOf(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `printf ') x (' > /proc/$$/comm; exec 2>/dev/null; echo up; read line`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 2)); err != nil { // the process has its name by now
		t.Error(err)
	}
	if got := parentOf(cmd.Process.Pid); got != os.Getpid() {
		t.Errorf("the parent of a child is %d, not this process, %d", got, os.Getpid())
	}
	_ = in.Close()
	_ = cmd.Wait() // read fails, because its input ends
	if got := parentOf(cmd.Process.Pid); got != 0 {
		t.Errorf("the parent of a process that is gone is %d", got)
	}
}
