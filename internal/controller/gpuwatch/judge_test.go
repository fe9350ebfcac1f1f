package gpuwatch

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

// TestXIDs checks the immediate actions of NVIDIA's catalogue, and that each of them has a hint.
func TestXIDs(t *testing.T) {
	for bucket, xids := range map[job.XIDBucket][]int{
		job.XIDIgnore:     {37, 38, 43, 44, 63, 66, 67, 92, 93, 121, 137, 141, 152, 153, 157, 160, 161},
		job.XIDRestartApp: {8, 11, 13, 25, 31, 32, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89, 94, 96, 100, 105, 126, 135, 139},
		job.XIDResetGPU:   {46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158},
		job.XIDRestart:    {79, 151},
		job.XIDInspect:    {54},
		job.XIDUpdate:     {78},
		job.XIDWorkflow:   {45, 48, 74, 144, 147, 150, 154, 159},
		job.XIDUnknown:    {1, 61, 87, 106, 162, 999},
	} {
		for _, xid := range xids {
			if got := bucketOf(xid); got != bucket {
				t.Errorf("XID %d is in %s, want %s", xid, got, bucket)
			}
		}
	}
	owner := map[int]job.XIDBucket{}
	for bucket, spans := range buckets {
		if byBucket[bucket].text == "" {
			t.Errorf("there is no advice for %s", bucket)
		}
		for _, s := range spans {
			for n := s.from; n <= s.to; n++ {
				if owner[n] != "" {
					t.Errorf("XID %d is in %s and %s", n, owner[n], bucket)
				}
				owner[n] = bucket
			}
		}
	}
	for xid, a := range byNumber {
		if a.text == "" || xids[xid] == "" || a.hint == "" && a.severity != job.SeverityNote {
			t.Errorf("XID %d: %+v", xid, a)
		}
	}
	if a := adviceOn(119); a.severity != job.SeverityError || !strings.Contains(a.hint, "--gpu-reset") {
		t.Errorf("XID 119: %+v", a)
	}
}

func TestSamples(t *testing.T) {
	well := nvml.Sample{Utilisation: 95, Memory: 40, Power: 690, SMClock: 1980, Temperature: 60, Throttle: []string{"sw_power_cap"}, Generation: 5, Width: 16, LargestGeneration: 5, LargestWidth: 16}
	with := func(change func(s *nvml.Sample)) nvml.Sample {
		s := well
		change(&s)
		return s
	}
	hot := with(func(s *nvml.Sample) { s.Throttle, s.SMClock, s.Temperature = []string{"hw_thermal_slowdown"}, 1200, 88 })
	slow := with(func(s *nvml.Sample) { s.Generation, s.Width = 3, 8 })
	repeat := func(s nvml.Sample, n int) []nvml.Sample { return slices.Repeat([]nvml.Sample{s}, n) }
	for name, c := range map[string]struct {
		samples []nvml.Sample
		want    []string // "sample sign severity: text"
	}{
		"well": {repeat(well, 100), nil},
		"idle, with the link of an idle GPU": {repeat(with(func(s *nvml.Sample) {
			s.Utilisation, s.Generation, s.Throttle = 0, 1, []string{"gpu_idle"}
		}), 100), nil},
		"hot for a moment": {slices.Concat(repeat(hot, lasting-1), repeat(well, 3), repeat(hot, lasting-1)), nil},
		"hot": {slices.Concat(repeat(well, 3), repeat(hot, 50)), []string{
			"8 gpu-throttled warning: its clock has been lowered for 30 s, because it is too hot (hw_thermal_slowdown; 1200 MHz, 690 W, 88 °C): its ranks are slower, and others wait for them"}},
		"power brake": {repeat(with(func(s *nvml.Sample) { s.Throttle = []string{"hw_power_brake_slowdown"} }), 10), []string{
			"5 gpu-throttled warning: its clock has been lowered for 30 s, because the power supply of the host asks for it (hw_power_brake_slowdown; 1980 MHz, 690 W, 60 °C): its ranks are slower, and others wait for them"}},
		"slow link": {slices.Concat(repeat(slow, lasting-1), repeat(well, 1), repeat(slow, 20)), []string{
			"11 gpu-pci-link warning: its PCIe link is of generation 3 with 8 lanes, and could be of generation 5 with 16 lanes"}},
		"slow link, pauses": {slices.Concat(repeat(slow, 3), repeat(with(func(s *nvml.Sample) { s.Utilisation = 0 }), 5), repeat(slow, 3)), []string{
			"10 gpu-pci-link warning: its PCIe link is of generation 3 with 8 lanes, and could be of generation 5 with 16 lanes"}},
		"link not told": {repeat(with(func(s *nvml.Sample) { s.Generation, s.Width, s.LargestGeneration, s.LargestWidth = 0, 0, 0, 0 }), 20), nil},
		"remap pending, then failed": {slices.Concat(repeat(well, 1), repeat(with(func(s *nvml.Sample) { s.Remapped.Pending = true }), 5), repeat(with(func(s *nvml.Sample) { s.Remapped.Failure = true }), 5)), []string{
			"1 gpu-remap warning: rows of its memory are broken and stay in use until it is reset",
			"6 gpu-remap error: a row of its memory is broken, and there is no spare row left to replace it"}},
		"pages": {repeat(with(func(s *nvml.Sample) { s.Retired.Pending = true }), 5), []string{"0 gpu-remap warning: pages of its memory are broken and stay in use until it is reset"}},
		"recovery": {slices.Concat(repeat(well, 1), repeat(with(func(s *nvml.Sample) { s.Recovery = "reboot" }), 5)), []string{
			"1 gpu-recovery error: the driver says that it must be recovered: reboot"}},
		"errors of NVLinks from before": {repeat(with(func(s *nvml.Sample) { s.LinkErrors = nvml.LinkErrors{Replays: 5, Recoveries: 1, CRC: 9} }), 20), nil},
		"errors of NVLinks": {slices.Concat(repeat(well, 2), repeat(with(func(s *nvml.Sample) { s.LinkErrors.CRC = 7 }), 5), repeat(with(func(s *nvml.Sample) { s.LinkErrors = nvml.LinkErrors{Recoveries: 2, CRC: 9} }), 5)), []string{
			"2 gpu-nvlink note: its NVLinks had 7 errors since the gang began, which were corrected",
			"7 gpu-nvlink warning: an NVLink has failed and was recovered 2 times since the gang began"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			r := &reporter{gpus: attempt("GPU-a", "GPU-b"), emit: func(e job.Event) {
				at := e.Time.Unix()
				text, ours := strings.CutPrefix(e.Text, "GPU1 (rank 1): ")
				if !ours || e.Hint == "" || e.GPU.UUID != "GPU-b" || !reflect.DeepEqual(e.GPU.Ranks, []int{1}) {
					t.Errorf("%+v, %+v", e, e.GPU)
				}
				got = append(got, fmt.Sprintf("%d %s %s: %s", at, e.GPU.Sign, e.GPU.Severity, text))
			}}
			for i, s := range c.samples {
				r.event(nvml.Event{Time: time.Unix(int64(i), 0), Kind: nvml.EventSample, UUID: "GPU-b", Sample: &s})
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestPulse checks that the load of a rank's GPUs is the mean of their latest samples.
func TestPulse(t *testing.T) {
	r := &reporter{gpus: attempt("GPU-a GPU-b", "GPU-c"), emit: func(job.Event) {}}
	for _, s := range []struct {
		uuid string
		nvml.Sample
	}{{"GPU-a", nvml.Sample{Utilisation: 5}}, {"GPU-a", nvml.Sample{Utilisation: 90, Memory: 30, Power: 600, SMClock: 1900}}, {"GPU-b", nvml.Sample{Utilisation: 10, Memory: 10, Power: 400, SMClock: 1700}}} {
		r.event(nvml.Event{Kind: nvml.EventSample, UUID: s.uuid, Sample: &s.Sample})
	}
	if got := r.pulse(0); got == nil || *got != (job.GPUPulse{Utilization: 50, Memory: 20, Power: 500, SMClock: 1800}) {
		t.Errorf("rank 0: %+v", got)
	}
	if got := r.pulse(1); got != nil {
		t.Errorf("rank 1: %+v", got)
	}
}

// TestStrangers simulates looks. Process 10 is rank 0, process 20 is rank 1, and processes 99 and 98 belong to no
// rank.
func TestStrangers(t *testing.T) {
	for name, c := range map[string]struct {
		rounds []string
		want   []string
	}{
		"none":               {[]string{"GPU-a=10 GPU-b=20", "GPU-a=10 GPU-b=20"}, nil},
		"in one look":        {[]string{"GPU-a=10 GPU-a=99", "GPU-a=10", "GPU-a=10 GPU-a=99", "GPU-a=10"}, nil},
		"in two looks":       {[]string{"GPU-a=10", "GPU-a=10 GPU-a=99", "GPU-a=10 GPU-a=99", "GPU-a=10 GPU-a=99"}, []string{"2 GPU0 (rank 0): process 99 (x) computes on it too, and is not of this gang"}},
		"two":                {[]string{"GPU-a=10 GPU-b=98 GPU-a=99", "GPU-a=10 GPU-a=99 GPU-b=98"}, []string{"1 GPU0 (rank 0): process 99 (x) computes on it too, and is not of this gang", "1 GPU1 (rank 1): process 98 (x) computes on it too, and is not of this gang"}},
		"no rank computes":   {[]string{"GPU-a=99", "GPU-a=99", "GPU-a=99"}, nil},
		"of the server":      {[]string{"GPU-a=10 GPU-a=97", "GPU-a=10 GPU-a=97", "GPU-a=10 GPU-a=97"}, nil},
		"ranks compute late": {[]string{"GPU-a=99", "GPU-a=99 GPU-a=10", "GPU-a=99 GPU-a=10", "GPU-a=99 GPU-a=10"}, []string{"2 GPU0 (rank 0): process 99 (x) computes on it too, and is not of this gang"}},
	} {
		t.Run(name, func(t *testing.T) {
			use := newSharing(attempt("GPU-a", "GPU-b"))
			use.parent = func(int) int { return 1 }
			use.name = func(pid int) string {
				if pid == 97 {
					return ""
				}
				return fmt.Sprintf("process %d (x)", pid)
			}
			use.started(job.Event{Kind: job.KindStarted, Host: "here", Rank: 0, PID: 10})
			use.started(job.Event{Kind: job.KindStarted, Host: "here", Rank: 1, PID: 20})
			var got []string
			r := &reporter{gpus: use.gpus, sharing: use, emit: func(e job.Event) {
				if e.GPU.Sign != job.GPUForeign || e.GPU.Severity != job.SeverityWarning || e.Hint == "" {
					t.Errorf("%+v, %+v", e, e.GPU)
				}
				got = append(got, fmt.Sprintf("%d %s", e.Time.Unix(), e.Text))
			}}
			for i, round := range c.rounds {
				for _, word := range strings.Fields(round) {
					uuid, text, _ := strings.Cut(word, "=")
					var pid int
					if _, err := fmt.Sscan(text, &pid); err != nil {
						t.Fatal(err)
					}
					r.event(nvml.Event{Kind: nvml.EventProcess, UUID: uuid, PID: pid})
				}
				r.event(nvml.Event{Time: time.Unix(int64(i), 0), Kind: nvml.EventLooked})
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got, want := describe(cmd.Process.Pid), fmt.Sprintf("process %d (", cmd.Process.Pid); !strings.HasPrefix(got, want) {
		t.Errorf("%q", got)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if got := describe(cmd.Process.Pid); got != "" {
		t.Errorf("a process that is gone is %q", got)
	}
	if got := describe(os.Getpid()); !strings.Contains(got, "gpuwatch") {
		t.Errorf("this process is %q", got)
	}
}
