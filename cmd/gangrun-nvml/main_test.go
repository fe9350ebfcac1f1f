//go:build cgo && linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
	"github.com/gangrun/gangrun/topology/probe"
)

// pretend is the variable that makes the test binary act as gangrun-nvml on a simulated host.
const pretend = "GANGRUN_NVML_TEST_PRETEND"

func TestMain(m *testing.M) {
	if os.Getenv(pretend) != "" {
		os.Exit(run(os.Args[1:], &host{}, os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// host is a host of two GPUs with four NVLinks between them. The second GPU reports little. The current process uses
// the first GPU.
type host struct {
	happens []nvml.Occurrence
}

func (h *host) Init() error { return nil }

func (h *host) Ask(q nvml.Query) (nvml.Answer, error) {
	switch q {
	case nvml.QueryDriver:
		return nvml.Answer{Text: "550.54.15"}, nil
	case nvml.QueryCount:
		return number(2), nil
	}
	return nvml.Answer{}, errors.New("Unknown Error")
}

func (h *host) GPU(index int) (nvml.GPU, error) { return gpu(index), nil }
func (h *host) Events() (nvml.EventSet, error)  { return h, nil }
func (h *host) Add(nvml.GPU) error              { return nil }
func (h *host) Free() error                     { return nil }
func (h *host) Wait(time.Duration) (nvml.Occurrence, error) {
	if len(h.happens) == 0 {
		return nvml.Occurrence{}, nvml.ErrTimeout
	}
	next := h.happens[0]
	h.happens = h.happens[1:]
	return next, nil
}

type gpu int

func bus(g gpu) string { return fmt.Sprintf("00000000:%d0:00.0", g+1) }

func (g gpu) Ask(q nvml.Query, n int) (nvml.Answer, error) {
	switch q {
	case nvml.QueryUUID:
		return nvml.Answer{Text: "GPU-" + strconv.Itoa(int(g))}, nil
	case nvml.QueryPCI:
		return nvml.Answer{Text: bus(g)}, nil
	case nvml.QueryMemory:
		if g == 0 {
			return number(80<<30, 1<<30, 79<<30), nil
		}
	case nvml.QueryLink:
		if n < 4 {
			return number(1), nil
		}
		return nvml.Answer{}, nvml.ErrNotFound
	case nvml.QueryPeerKind:
		return number(nvml.PeerGPU), nil
	case nvml.QueryPeer:
		return nvml.Answer{Text: bus(1 - g)}, nil
	}
	return nvml.Answer{}, nvml.ErrNotSupported
}

func (g gpu) Processes(q nvml.Query) ([]nvml.Process, error) {
	if g == 0 && q == nvml.QueryCompute {
		return []nvml.Process{{PID: os.Getpid(), Memory: 1 << 30}}, nil
	}
	return nil, nil
}

func (g gpu) Instance(int) (nvml.GPU, error)      { return nil, nvml.ErrNotFound }
func (g gpu) Ancestor(nvml.GPU) (job.Link, error) { return job.LinkSYS, nil }

func number(n ...uint64) nvml.Answer {
	var a nvml.Answer
	copy(a.Numbers[:], n)
	return a
}

// build builds gangrun-nvml in the same way as "make build".
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gangrun-nvml")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-extldflags=-Wl,-z,lazy", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// TestBinary runs the program on the host of the test, which may have a driver or not. gangrun reads its output.
func TestBinary(t *testing.T) {
	path := build(t)
	_, statErr := os.Stat("/dev/nvidiactl")
	driver := statErr == nil
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	out, err := exec.CommandContext(ctx, path).Output()
	if err != nil {
		t.Fatalf("it ended with %v", err)
	}
	var r nvml.Report
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil || decoder.More() {
		t.Fatalf("it printed %q: %v", out, err)
	}
	if r.Source != "gangrun-nvml" || r.Devices == nil || r.Check() != nil {
		t.Errorf("it printed %s", out)
	}
	if !driver && (!r.NoDriver || r.Failed == "" || len(r.Devices) > 0) || driver && r.Driver == "" && r.Failed == "" {
		t.Errorf("with a driver %v it printed %s", driver, out)
	}

	found, findings, err := probe.Find(t.Context(), probe.Options{NVML: path, Path: t.TempDir(), Limit: patience})
	if err != nil {
		t.Fatal(err)
	}
	if !driver && (!found.NoDriver || len(findings) != 1 || !strings.Contains(findings[0].Text, "no NVIDIA driver")) {
		t.Errorf("gangrun read %+v, and says %+v", found, findings)
	}
	if driver && r.Failed == "" && found.Driver != r.Driver {
		t.Errorf("gangrun read %+v, and says %+v", found, findings)
	}

	if !driver {
		cmd := exec.CommandContext(ctx, path, "events")
		var says bytes.Buffer
		cmd.Stderr = &says
		out, err := cmd.Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || len(out) > 0 || !strings.Contains(says.String(), "libnvidia-ml.so.1 cannot be loaded") {
			t.Errorf("events printed %q, said %q and ended with %v", out, says.String(), err)
		}
	}
}

// TestProbe lets gangrun read the output of the program on a host with GPUs.
func TestProbe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "gangrun-nvml")
	// A program cannot be started while a child that is being forked has it open for writing.
	syscall.ForkLock.RLock()
	err = os.WriteFile(path, []byte("#!/bin/sh\nexec env "+pretend+"=1 '"+self+"' \"$@\"\n"), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	r, findings, err := probe.Find(t.Context(), probe.Options{NVML: path, Path: dir, Limit: patience})
	if err != nil || len(findings) != 1 || findings[0].Severity != job.SeverityNote || findings[0].Text != "NVML does not report cuda: Unknown Error" {
		t.Fatalf("%+v, %v", findings, err)
	}
	want := nvml.Read(&host{}, about)
	if len(r.Devices) != 2 || len(r.Devices[0].Processes) != 1 {
		t.Fatalf("%+v", r)
	}
	p := &r.Devices[0].Processes[0]
	if p.PID == os.Getpid() || p.User != want.Devices[0].Processes[0].User || p.User == "" || p.Name == "" {
		t.Errorf("the process %+v", *p)
	}
	*p = want.Devices[0].Processes[0] // this process was the child
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	if r.Links[0][1] != "NV4" || r.Devices[1].Errors["memory_total"] != "not supported" || r.Errors["cuda"] != "Unknown Error" {
		t.Errorf("%+v", r)
	}
}

func TestEvents(t *testing.T) {
	in, hold := io.Pipe()
	lines, out := io.Pipe()
	h := &host{happens: []nvml.Occurrence{{GPU: gpu(1), Kind: nvml.EventXID, Data: 79}, {GPU: gpu(0), Kind: nvml.EventECCDouble}}}
	ended := make(chan int)
	var says bytes.Buffer
	go func() {
		code := run([]string{"events"}, h, in, out, &says)
		_ = out.Close()
		ended <- code
	}()
	scanner := bufio.NewScanner(lines)
	alive := 0
	scan := func() bool {
		for scanner.Scan() {
			if !strings.Contains(scanner.Text(), `"alive"`) {
				return true
			}
			alive++
		}
		return false
	}
	for _, want := range []nvml.Event{
		{Kind: nvml.EventXID, UUID: "GPU-1", PCI: "0000:20:00.0", XID: 79}, {Kind: nvml.EventECCDouble, UUID: "GPU-0", PCI: "0000:10:00.0"},
	} {
		if !scan() {
			t.Fatalf("the stream ended: %v", scanner.Err())
		}
		var got nvml.Event
		if err := json.Unmarshal(scanner.Bytes(), &got); err != nil {
			t.Fatalf("%q: %v", scanner.Bytes(), err)
		}
		if got.Time.IsZero() {
			t.Error("an event has no time")
		}
		if got.Time = (time.Time{}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	select {
	case code := <-ended:
		t.Fatalf("it ended with %d while its input was open: %s", code, says.String())
	default:
	}
	_ = hold.Close()
	if alive == 0 {
		t.Error("it has not told that it watches")
	}
	if scan() {
		t.Errorf("it printed %q after its input had ended", scanner.Bytes())
	}
	if code := <-ended; code != 0 || says.Len() > 0 {
		t.Errorf("it ended with %d and said %q", code, says.String())
	}
}

func TestArguments(t *testing.T) {
	for _, test := range []struct {
		args        []string
		code        int
		prints, say string
	}{
		{nil, 0, `"driver":"550.54.15"`, ""},
		{[]string{"--help"}, 0, "usage: gangrun-nvml", ""},
		{[]string{"event"}, 2, "", `not ["event"]`},
		{[]string{"now", "events"}, 2, "", "usage: gangrun-nvml"},
	} {
		var out, says bytes.Buffer
		code := run(test.args, &host{}, strings.NewReader(""), &out, &says)
		if code != test.code || !strings.Contains(out.String(), test.prints) || !strings.Contains(says.String(), test.say) ||
			(test.prints == "") != (out.Len() == 0) || (test.say == "") != (says.Len() == 0) {
			t.Errorf("%q: code %d, printed %q, said %q", test.args, code, out.String(), says.String())
		}
	}
}

func TestCannotPrint(t *testing.T) {
	in, out := io.Pipe()
	_ = in.Close()
	var says bytes.Buffer
	if code := run(nil, &host{}, strings.NewReader(""), out, &says); code != 1 || !strings.Contains(says.String(), "closed pipe") {
		t.Errorf("code %d, said %q", code, says.String())
	}
}

func TestAbout(t *testing.T) {
	owner, name := about(os.Getpid())
	if owner == "" || name != os.Args[0] {
		t.Errorf("this test is %q of %q", name, owner)
	}
	if owner, name := about(1 << 30); owner != "" || name != "" {
		t.Errorf("no process is %q of %q", name, owner)
	}
	if _, name := about(2); name == "" { // in a container, process 2 may be any process; on a host, it has no arguments
		if _, err := os.Stat("/proc/2"); err == nil {
			t.Error("process 2 has no name")
		}
	}
}
