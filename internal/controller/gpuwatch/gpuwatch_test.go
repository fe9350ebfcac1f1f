package gpuwatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
	"github.com/gangrun/gangrun/topology/probe"
)

// gangOf is a Runner of a simulated gang.
type gangOf func(ctx context.Context, emit func(job.Event)) (job.Outcome, error)

func (g gangOf) Run(ctx context.Context, _ job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	return g(ctx, emit)
}

// isHere reports whether host is called "here". This host stands for this machine.
func isHere(host string) bool { return host == "here" }

// script writes a shell script and returns its path. The script begins in its own directory.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gangrun-nvml")
	// A program cannot be started while a child that is being forked has it open for writing.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncd "+filepath.Dir(path)+"\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// onGPUs returns an attempt on a host of two GPUs. The second one is divided into two MIG instances.
func onGPUs(host string, devices ...string) job.Attempt {
	a := job.Attempt{Number: 3, Placement: job.Placement{Hosts: []job.Host{{Name: host, Address: "127.0.0.1", Devices: []job.Device{
		{UUID: "GPU-a", Index: 0, PCI: "0000:18:00.0"}, {UUID: "GPU-b", Index: 1, PCI: "0000:2a:00.0"},
		{UUID: "MIG-1", Index: 1, GPU: "GPU-b", PCI: "0000:2a:00.0"}, {UUID: "MIG-2", Index: 1, GPU: "GPU-b", PCI: "0000:2a:00.0"},
	}}}}}
	for i, d := range devices {
		a.Placement.Ranks = append(a.Placement.Ranks, job.Rank{Rank: i, Host: host, Devices: strings.Fields(d)})
	}
	return a
}

func TestGPUsOn(t *testing.T) {
	for name, test := range map[string]struct {
		attempt job.Attempt
		uuids   []string
		ranks   map[string][]int
		names   []string
	}{
		"GPUs":                      {onGPUs("here", "GPU-b", "GPU-a"), []string{"GPU-b", "GPU-a"}, map[string][]int{"GPU-b": {0}, "GPU-a": {1}}, []string{"GPU0 (rank 1)", "GPU1 (rank 0)"}},
		"one of two":                {onGPUs("here", "GPU-a"), []string{"GPU-a"}, map[string][]int{"GPU-a": {0}}, []string{"GPU0 (rank 0)", "GPU1"}},
		"instances":                 {onGPUs("here", "GPU-a", "MIG-1", "MIG-2"), []string{"GPU-a", "GPU-b"}, map[string][]int{"GPU-a": {0}, "GPU-b": {1, 2}}, []string{"GPU0 (rank 0)", "GPU1 (ranks 1, 2)"}},
		"two instances of one rank": {onGPUs("here", "MIG-1 MIG-2"), []string{"GPU-b"}, map[string][]int{"GPU-b": {0}}, []string{"GPU0", "GPU1 (rank 0)"}},
		"none":                      {onGPUs("here", "", ""), nil, map[string][]int{}, []string{"GPU0", "GPU1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := gpusOn(test.attempt.Placement, test.attempt.Placement.Hosts[0])
			if !slices.Equal(g.uuids, test.uuids) || !reflect.DeepEqual(g.ranks, test.ranks) {
				t.Errorf("GPUs %q, ranks %v", g.uuids, g.ranks)
			}
			if names := []string{g.name("GPU-a", ""), g.name("GPU-b", "")}; !slices.Equal(names, test.names) {
				t.Errorf("names %q, want %q", names, test.names)
			}
		})
	}
}

func TestReporter(t *testing.T) {
	var got []job.Event
	on := onGPUs("here", "GPU-a", "MIG-2").Placement
	r := &reporter{gpus: gpusOn(on, on.Hosts[0]), attempt: 3, emit: func(e job.Event) { got = append(got, e) }}
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	timed := func(e nvml.Event) nvml.Event { e.Time = at; return e }
	for range maxRepeats + 100 {
		r.event(timed(nvml.Event{Kind: nvml.EventECCSingle, UUID: "GPU-a"}))
	}
	r.event(timed(nvml.Event{Kind: nvml.EventXID, PCI: "0000:2a:00.0", XID: 79, Text: "GPU instance 3"})) // an event without a UUID
	r.event(timed(nvml.Event{Kind: nvml.EventECCDouble, UUID: "GPU-a"}))
	r.event(timed(nvml.Event{Kind: nvml.EventXID, PCI: "0000:ff:00.0", XID: 999}))
	r.finding(job.Finding{Check: probe.CheckHung, Text: "it hangs", Hint: "reboot"})
	r.finding(job.Finding{Check: probe.CheckWatch, Text: "not watched", Hint: "look"})
	for i := range 2 * maxDistinct {
		r.event(timed(nvml.Event{Kind: nvml.EventXID, UUID: "GPU-a", XID: 1000 + i}))
	}
	r.close()
	if want := maxRepeats + 5 + maxDistinct - 4 + 1; len(got) != want {
		t.Fatalf("%d events, want %d", len(got), want)
	}
	for i, want := range map[int]job.Event{
		0:              {Time: at, Text: "GPU0 (rank 0): a memory error, which ECC has corrected", GPU: &job.GPU{Sign: job.GPUECCSingle, Severity: job.SeverityNote, UUID: "GPU-a", Ranks: []int{0}}},
		maxRepeats - 1: {Time: at, Text: "GPU0 (rank 0): a memory error, which ECC has corrected; further ones are only counted", GPU: &job.GPU{Sign: job.GPUECCSingle, Severity: job.SeverityNote, UUID: "GPU-a", Ranks: []int{0}}},
		maxRepeats:     {Time: at, Text: "GPU1 (rank 1): XID 79, GPU has fallen off the bus, GPU instance 3 (the driver can no longer reach the GPU until the host is rebooted)", Hint: byNumber[79].hint, GPU: &job.GPU{Sign: job.GPUXID, Bucket: job.XIDRestart, Severity: job.SeverityError, UUID: "GPU-b", PCI: "0000:2a:00.0", XID: 79, Ranks: []int{1}}},
		maxRepeats + 1: {Time: at, Text: "GPU0 (rank 0): a memory error, which ECC could not correct", Hint: byNumber[48].hint, GPU: &job.GPU{Sign: job.GPUECCDouble, Severity: job.SeverityError, UUID: "GPU-a", Ranks: []int{0}}},
		maxRepeats + 2: {Time: at, Text: "GPU 0000:ff:00.0: XID 999 (not in NVIDIA's catalogue)", Hint: byBucket[job.XIDUnknown].hint, GPU: &job.GPU{Sign: job.GPUXID, Bucket: job.XIDUnknown, Severity: job.SeverityWarning, PCI: "0000:ff:00.0", XID: 999}},
		maxRepeats + 3: {Text: "it hangs", Hint: "reboot", GPU: &job.GPU{Sign: job.GPUDriverHung, Severity: job.SeverityError}},
		maxRepeats + 4: {Text: "not watched", Hint: "look", GPU: &job.GPU{Sign: job.GPUUnwatched, Severity: job.SeverityNote}},
		len(got) - 1:   {Text: fmt.Sprintf("GPU0 (rank 0): a memory error, which ECC has corrected; %d times in all", maxRepeats+100), GPU: &job.GPU{Sign: job.GPUECCSingle, Severity: job.SeverityNote, UUID: "GPU-a", Ranks: []int{0}, Count: maxRepeats + 100}},
	} {
		want.Kind, want.Attempt, want.Host = job.KindGPU, 3, "here"
		if got[i].Time.IsZero() {
			t.Errorf("event %d has no time", i)
		}
		if want.Time.IsZero() {
			got[i].Time = want.Time
		}
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("event %d is %+v, %+v; want %+v, %+v", i, got[i], got[i].GPU, want, want.GPU)
		}
	}
}

// TestWatcher checks that the events of a gang and those of its GPUs come one at a time. After a failure of the gang,
// the Watcher must wait for the last reports of the driver. No event may come after the end.
func TestWatcher(t *testing.T) {
	for name, test := range map[string]struct {
		good bool
		xids int
	}{"dies": {false, 1}, "ends well": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := script(t, `echo '{"kind":"alive"}'; touch watching
while ! [ -e dead ]; do sleep 0.01; done
echo '{"kind":"xid","uuid":"GPU-a","xid":79}'`)
			here := func(file string) string { return filepath.Join(filepath.Dir(path), file) }
			gang := func(ctx context.Context, emit func(job.Event)) (job.Outcome, error) {
				for range 100 {
					emit(job.Event{Kind: job.KindProgress})
				}
				for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
					if _, err := os.Stat(here("watching")); err == nil {
						break
					}
					if ctx.Err() != nil || time.Now().After(deadline) {
						return job.Outcome{}, errors.New("gangrun-nvml has not been started")
					}
				}
				if test.good {
					return job.Outcome{Exits: []job.Exit{{Rank: 0, Status: job.Exited}}}, nil
				}
				return job.Outcome{Exits: []job.Exit{{Rank: 0, Status: job.Exited, Code: 1}}}, os.WriteFile(here("dead"), nil, 0o600)
			}
			// The wait must end when gangrun-nvml has ended, although settle is much longer.
			w := Watcher{runner: gangOf(gang), here: isHere, watching: probe.Watching{NVML: path, Start: time.Minute, Silence: time.Minute, Restarts: -1}, settle: time.Hour}
			emitting, kinds, over := false, map[job.Kind]int{}, false
			outcome, err := w.Run(t.Context(), onGPUs("here", "GPU-a"), func(e job.Event) {
				if emitting || over {
					t.Error("two events at once, or one after the end")
				}
				emitting = true
				kinds[e.Kind]++
				if e.Kind == job.KindGPU && e.GPU.Sign == job.GPUXID && (e.GPU.XID != 79 || e.Attempt != 3) {
					t.Errorf("%+v, %+v", e, e.GPU)
				}
				emitting = false
			})
			over = true
			if err != nil || len(outcome.Exits) != 1 {
				t.Errorf("%+v, %v", outcome, err)
			}
			// The end of gangrun-nvml itself must be reported, too.
			if kinds[job.KindProgress] != 100 || kinds[job.KindGPU] != 2*test.xids {
				t.Errorf("events %v", kinds)
			}
		})
	}
}

// TestWatcherEndsWithTheRun checks that the Watcher does not wait for the driver if the user has ended the gang.
func TestWatcherEndsWithTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	path := script(t, `while echo '{"kind":"alive"}'; do sleep 0.1; done`)
	gang := func(context.Context, func(job.Event)) (job.Outcome, error) {
		cancel()
		return job.Outcome{}, nil
	}
	w := Watcher{runner: gangOf(gang), here: isHere, watching: probe.Watching{NVML: path}, settle: time.Hour}
	if _, err := w.Run(ctx, onGPUs("here", "GPU-a"), func(e job.Event) { t.Errorf("%+v", e) }); err != nil {
		t.Error(err)
	}
}

// runs returns a Launch that runs a program on this machine as if it ran on the host.
func runs(t *testing.T, path string) Launch {
	return func(_ context.Context, host string, args ...string) (probe.Remote, error) {
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), "HOST="+host)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return probe.Remote{}, err
		}
		var says strings.Builder
		cmd.Stderr = &says
		if err := cmd.Start(); err != nil {
			return probe.Remote{}, err
		}
		return probe.Remote{Stdout: out, Stderr: func() string { return says.String() }, Close: func() error {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			return cmd.Wait()
		}}, nil
	}
}

// TestOtherHosts checks that the GPUs of every host are watched. Errors on other hosts must name the host and its
// ranks. Processes are identified by their origins on their host.
func TestOtherHosts(t *testing.T) {
	path := script(t, `[ "$*" = "events GPU-a" ] || exit 1
echo '{"kind":"alive"}'
echo '{"kind":"sample","uuid":"GPU-a","sample":{"utilisation":90,"power":'${HOST#h}00'}}'
[ $HOST = h1 ] && echo '{"kind":"xid","uuid":"GPU-a","xid":79}'
while sleep 0.01; do
	echo '{"kind":"process","uuid":"GPU-a","pid":70,"origin":{"name":"python","uid":0,"ancestors":[60,50,1]}}'
	[ $HOST = h2 ] && echo '{"kind":"process","uuid":"GPU-a","pid":71,"origin":{"name":"other","uid":4711,"ancestors":[1]}}'
	echo '{"kind":"looked"}'
done`)
	a := onGPUs("h1", "GPU-a")
	other := a.Placement.Hosts[0]
	other.Name = "h2"
	a.Placement.Hosts = append(a.Placement.Hosts, other, job.Host{Name: "h3"})
	a.Placement.Ranks = append(a.Placement.Ranks, job.Rank{Rank: 1, Host: "h2", Devices: []string{"GPU-a"}}, job.Rank{Rank: 2, Host: "h3"})
	told := make(chan string, 100)
	var pulses []job.Pulse
	gang := func(ctx context.Context, emit func(job.Event)) (job.Outcome, error) {
		for i, host := range []string{"h1", "h2"} {
			emit(job.Event{Kind: job.KindStarted, Host: host, Rank: i, PID: 50})
		}
		limit := time.After(time.Minute)
		got := []string{}
		for len(got) < 2 {
			select {
			case text := <-told:
				got = append(got, text)
			case <-limit:
				return job.Outcome{}, errors.New("nothing is told any more")
			}
		}
		slices.Sort(got)
		want := []string{
			"h1 xid [0] GPU0 (rank 0): XID 79, GPU has fallen off the bus (the driver can no longer reach the GPU until the host is rebooted)",
			"h2 gpu-foreign [1] GPU0 (rank 1): process 71 (other, of user 4711) computes on it too, and is not of this gang",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		emit(job.Event{Kind: job.KindPulse, Pulses: &job.Pulses{Ranks: []job.Pulse{{Rank: 0}, {Rank: 1}, {Rank: 2}}}})
		return job.Outcome{Exits: []job.Exit{{Rank: 0, Status: job.Exited}, {Rank: 1, Status: job.Exited}, {Rank: 2, Status: job.Exited}}}, nil
	}
	w := New(gangOf(gang), isHere, runs(t, path))
	_, err := w.Run(t.Context(), a, func(e job.Event) {
		if e.Kind == job.KindGPU {
			told <- fmt.Sprint(e.Host, " ", e.GPU.Sign, " ", e.GPU.Ranks, " ", e.Text)
		}
		if e.Kind == job.KindPulse {
			pulses = e.Pulses.Ranks
		}
	})
	if err != nil {
		t.Error(err)
	}
	if len(pulses) != 3 {
		t.Fatalf("got the pulses %+v, want 3", pulses)
	}
	for rank, want := range []*job.GPUPulse{{Utilization: 90, Power: 100}, {Utilization: 90, Power: 200}, nil} {
		if got := pulses[rank].GPU; !reflect.DeepEqual(got, want) {
			t.Errorf("rank %d: %+v, want %+v", rank, got, want)
		}
	}
	if len(told) > 0 {
		t.Errorf("told too: %s", <-told)
	}
	// Without a Launch, other hosts are not watched.
	if got := New(gangOf(gang), isHere, nil).reporters(a, nil); len(got) != 0 {
		t.Errorf("%d hosts would be watched", len(got))
	}
}
