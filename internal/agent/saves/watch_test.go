package saves

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// npz returns a checkpoint with n numbers.
func npz(t *testing.T, n int) []byte {
	t.Helper()
	header := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }", n)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "weights.npy", Method: zip.Store})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(w, "\x93NUMPY\x01\x00%c%c%s", byte(len(header)), byte(len(header)>>8), header)
	if _, err := w.Write(make([]byte, 8*n)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// watched is a directory that a watch looks at.
type watched struct {
	t      *testing.T
	dir    string
	events chan job.Event
	looks  chan int // gets the number of files that each look has found
	end    func()
}

func watching(t *testing.T, o Options) *watched {
	w := &watched{t: t, dir: t.TempDir(), events: make(chan job.Event, 100), looks: make(chan int, 1000)}
	ctx, cancel := context.WithCancel(t.Context())
	o.Host, o.Dir, o.Emit = "h1", w.dir, func(e job.Event) { w.events <- e }
	o.looked = func(found int) { w.looks <- found }
	done := make(chan struct{})
	go func() { defer close(done); Watch(ctx, o) }()
	w.end = func() { cancel(); <-done }
	t.Cleanup(w.end)
	return w
}

func (w *watched) write(name string, data []byte) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// next returns the next report.
func (w *watched) next() job.SaveReport {
	w.t.Helper()
	select {
	case e := <-w.events:
		if e.Kind != job.KindSave || e.Host != "h1" || e.Text == "" || e.Save == nil || e.Time.IsZero() {
			w.t.Fatalf("%+v", e)
		}
		return *e.Save
	case <-time.After(3 * time.Minute):
		w.t.Fatal("nothing is reported")
		return job.SaveReport{}
	}
}

// seen waits until a look has found n files.
func (w *watched) seen(n int) {
	w.t.Helper()
	for limit := time.After(3 * time.Minute); ; {
		select {
		case found := <-w.looks:
			if found == n {
				return
			}
		case <-limit:
			w.t.Fatalf("a look finds %d", n)
		}
	}
}

// TestWatch checks that a checkpoint is verified when it is complete, and that its report says how long the training
// stood still.
func TestWatch(t *testing.T) {
	var mu sync.Mutex
	var steps []saves.Step
	step := func(at time.Time) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, saves.Step{Time: at, Count: int64(len(steps))})
	}
	for i := range 10 {
		step(time.Now().Add(time.Duration(i-10) * time.Second))
	}
	w := watching(t, Options{Steps: func() [][]saves.Step {
		mu.Lock()
		defer mu.Unlock()
		return [][]saves.Step{append([]saves.Step(nil), steps...), nil}
	}})
	w.seen(0)
	begun := time.Now()
	data := npz(t, 1000)
	w.write("ckpt-10.npz", data)
	step(time.Now().Add(3 * time.Second)) // this step took 4 s instead of 1 s
	r := w.next()
	if r.State != job.SaveComplete || r.Step != 10 || r.Format != "npz" || r.Bytes != int64(len(data)) || r.Files != 1 || filepath.Base(r.Path) != "ckpt-10.npz" {
		t.Errorf("%+v", r)
	}
	if r.Begun.Before(begun.Add(-time.Second)) || r.Write < 0 || time.Duration(r.Write) > time.Since(begun) {
		t.Errorf("begun %v before the write, written in %v", begun.Sub(r.Begun), r.Write)
	}
	if r.Stall == nil || (time.Duration(*r.Stall)-3*time.Second).Abs() > time.Second {
		t.Errorf("the training stood still for %v, want 3 s", r.Stall)
	}
}

// TestDirectory checks that a checkpoint of many files counts as one.
func TestDirectory(t *testing.T) {
	w := watching(t, Options{})
	w.seen(0)
	for i := range 3 {
		w.write(fmt.Sprintf("step_5/rank%d.npz", i), npz(t, 100))
	}
	go w.end() // at the end of the gang, complete checkpoints are reported without waiting for a further step
	if r := w.next(); r.State != job.SaveComplete || r.Step != 5 || r.Stall != nil || r.Format != "directory" {
		t.Errorf("%+v", r)
	}
}

// TestTorn checks that an incomplete checkpoint is reported when the next one is complete.
func TestTorn(t *testing.T) {
	w := watching(t, Options{})
	w.seen(0)
	data := npz(t, 1000)
	w.write("ckpt-1.npz", data[:len(data)/2])
	w.seen(1) // the first checkpoint begins before the next one
	w.write("ckpt-2.npz", data)
	seen := map[string]job.SaveReport{}
	for len(seen) < 1 {
		r := w.next()
		seen[filepath.Base(r.Path)] = r
	}
	if r := seen["ckpt-1.npz"]; len(seen) == 1 && r.Path == "" { // the good checkpoint is reported first
		r = w.next()
		seen[filepath.Base(r.Path)] = r
	}
	if r := seen["ckpt-1.npz"]; r.State != job.SaveBroken || !strings.Contains(r.Why, "truncated") {
		t.Errorf("%+v", r)
	}
}

// TestMissing checks that a missing directory does no harm.
func TestMissing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	Watch(ctx, Options{Dir: filepath.Join(t.TempDir(), "missing"), Emit: func(e job.Event) { t.Errorf("%+v", e) }})
	if ctx.Err() == nil {
		t.Error("it did not wait for the directory")
	}
}

// TestPriority checks that only the thread that verifies has the lowest priority.
func TestPriority(t *testing.T) {
	priority := func(id int) int {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, id) // the kernel returns 20 minus the niceness
		if err != nil {
			t.Error(err)
		}
		return n
	}
	before := priority(os.Getpid())
	for range 20 {
		inBackground(func() {
			if n := priority(unix.Gettid()); n != 1 {
				t.Errorf("the thread has the priority %d", n)
			}
		})
	}
	if n := priority(os.Getpid()); n != before {
		t.Errorf("the process has the priority %d, and had %d", n, before)
	}
}

// TestFIFO checks that a FIFO among the files does not block the verification.
func TestFIFO(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ckpt-1.npz")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := verify(t.Context(), dir, "k", []saves.Found{{Path: path}}); len(c.results) > 0 && c.results[0].Why == "" {
		t.Errorf("a FIFO is good: %+v", c)
	}
}
