package stacks

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
)

// recorder does what PyTorch does: it makes a FIFO, looks at it from time to time, and writes a dump if
// something has been written to it. The dump comes in two parts, and has as many calls as dumps have been
// asked for.
const recorder = `
import os, pickle, sys, time
pipe, dump = sys.argv[1:]
os.mkfifo(pipe)
fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
call = {"process_group": ("0", "default_pg"), "profiling_name": "nccl:all_reduce", "state": "completed", "is_p2p": False}
entries = []
print("ready", flush=True)
while True:
    if os.read(fd, 128):
        entries.append({**call, "collective_seq_id": len(entries) + 1})
        data = pickle.dumps({"version": "2.10", "pg_config": {"0": {"desc": "default_pg", "ranks": "[0, 1]"}}, "pg_status": {}, "entries": entries}, protocol=2)
        with open(dump, "wb") as f:
            f.write(data[:40])
            f.flush()
            time.sleep(0.2)
            f.write(data[40:])
    time.sleep(0.02)
`

// TestFlightRecorder checks that a Collector asks the flight recorder of a rank for a dump, and ignores a
// dump that was there before.
func TestFlightRecorder(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	b := newBed(t)
	script := agenttest.WriteFile(t, filepath.Join(b.dir, "recorder.py"), recorder, 0o644)
	flight := Flight{Pipe: filepath.Join(b.dir, "fr_1.pipe"), Dump: filepath.Join(b.dir, "fr_1")}
	pid := b.start(nil, python, script, flight.Pipe, flight.Dump)
	c := b.only()
	for round := range 2 {
		got := b.one(c, Target{Rank: 1, PID: pid, Flight: flight})
		if r := got.Record; r == nil || r.Rank != 1 || len(r.Calls) != round+1 || r.Calls[round].Op != "nccl:all_reduce" {
			t.Fatalf("in round %d got %+v", round, r)
		}
		if !got.Python || got.ReadPython() {
			t.Errorf("got Python %v, and its functions read %v; want a Python program of which only /proc is known", got.Python, got.ReadPython())
		}
	}
	if got := b.one(c, Target{Rank: 1, PID: pid}); got.Record != nil {
		t.Errorf("without a pipe, got %+v", got.Record)
	}
	// The stopped process writes no new dump. The old one is still there.
	b.signal(pid, unix.SIGSTOP)
	b.eventually(pid, 'T')
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got := c.Collect(ctx, []Target{{Rank: 1, PID: pid, Flight: flight}}); got[0].Record != nil || len(got[0].Threads) == 0 {
		t.Errorf("of a recorder that is stopped, got %+v", got[0])
	}
}

// TestNoFlightRecorder checks that signal writes only to a FIFO that a process reads, and that it never
// waits.
func TestNoFlightRecorder(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := unix.Mkfifo(at("unread"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("file"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("file"), at("link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"absent", "unread", "file", "link"} {
		if signal(at(name)) {
			t.Errorf("%s: it has been written to", name)
		}
	}
	if data, err := os.ReadFile(at("file")); err != nil || string(data) != "mine" {
		t.Errorf("the file has %q, %v", data, err)
	}
	for _, name := range []string{"absent", "unread", "file", "link"} {
		if r := ReadDump(0, at(name)); r != nil {
			t.Errorf("%s: got the record %+v", name, r)
		}
	}
}
