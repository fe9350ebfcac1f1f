package probe

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

// heard has what a Watch has reported.
type heard struct {
	mu       sync.Mutex
	events   []nvml.Event
	findings []job.Finding
	change   chan struct{} // gets a value, if it is empty, with each report
}

// watchHost watches a host whose gangrun-nvml is a script, until the test calls stop. stop waits until Watch
// returns. The arguments of the script are in $*.
func watchHost(t *testing.T, o Watching, script string) (w *heard, dir string, stop func()) {
	t.Helper()
	if script != "" {
		dir = host(t, map[string]string{"gangrun-nvml": script})
	} else {
		dir = t.TempDir()
	}
	if o.GPUs == nil {
		o.GPUs = []string{"GPU-a", "GPU-b"}
	}
	o.Path = dir
	w = &heard{change: make(chan struct{}, 1)}
	tell := func() {
		select {
		case w.change <- struct{}{}:
		default:
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer tell()
		Watch(ctx, o, func(e nvml.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
			tell()
		}, func(f job.Finding) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.findings = append(w.findings, f)
			tell()
		})
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return w, dir, stop
}

// until waits until there are so many events and findings.
func (w *heard) until(t *testing.T, events, findings int) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		w.mu.Lock()
		e, f := len(w.events), len(w.findings)
		w.mu.Unlock()
		if e >= events && f >= findings {
			return
		}
		select {
		case <-w.change:
		case <-limit:
			t.Fatalf("%d events, %d findings after a minute, want %d and %d: %+v", e, f, events, findings, w.findings)
		}
	}
}

// started returns the PIDs of the children that have written their PIDs to the file started.
func started(t *testing.T, dir string) []int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "started"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var pids []int
	for line := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

const (
	begin = "echo $$ >> started; "
	alive = `echo '{"time":"2026-11-21T10:00:00Z","kind":"alive"}'; `
	xid79 = `echo '{"time":"'$(date -Ins | tr , .)'","kind":"xid","uuid":"GPU-a","pci":"0000:3b:00.0","xid":79}'; `
	stay  = "exec sleep 600"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	quick := Watching{Start: time.Minute, Silence: time.Minute, Pause: time.Millisecond}
	silent := Watching{Start: time.Minute, Silence: 200 * time.Millisecond, Pause: time.Millisecond, Restarts: 2}
	ecc := nvml.Event{Kind: nvml.EventECCDouble, UUID: "GPU-b"}
	xid := nvml.Event{Kind: nvml.EventXID, UUID: "GPU-a", PCI: "0000:3b:00.0", XID: 79}
	for name, test := range map[string]struct {
		script   string
		with     Watching
		events   []nvml.Event
		findings []string
		starts   int // if it is below 0, the child may be killed before it has written that it was started
	}{
		"tells": {alive + xid79 + alive + `echo '{"kind":"ecc-double","uuid":"GPU-b"}'; ` + stay, quick, []nvml.Event{xid, ecc}, nil, 1},
		"tells of processes": {alive + `echo '{"kind":"process","uuid":"GPU-b","pid":4242}'; echo '{"kind":"process","uuid":"GPU-c","pid":7}'; echo '{"kind":"looked"}'; ` + stay,
			quick, []nvml.Event{{Kind: nvml.EventProcess, UUID: "GPU-b", PID: 4242}, {Kind: nvml.EventLooked}}, nil, 1},
		"tells of others too": {`echo '{"kind":"xid","uuid":"GPU-c","xid":31}'; echo '{"kind":"row-remapped","uuid":"GPU-a"}'; ` + xid79 + stay,
			quick, []nvml.Event{xid}, nil, 1},
		"tells of one without a UUID": {`echo '{"kind":"xid","pci":"0000:3B:00.0","xid":79}'; ` + stay,
			quick, []nvml.Event{{Kind: nvml.EventXID, PCI: "0000:3b:00.0", XID: 79}}, nil, 1},
		"is told which": {`[ "$*" = "events GPU-a GPU-b" ] && ` + xid79 + stay, quick, []nvml.Event{xid}, nil, 1},
		"cannot watch one": {alive + "echo 'gangrun-nvml: warning: GPU GPU-b is not watched: Not Supported' >&2; " + stay, quick, nil,
			[]string{"note: GPU GPU-b is not watched: Not Supported | dmesg"}, 1},
		"warns at last": {alive + "echo 'gangrun-nvml: warning: GPU GPU-a is not watched any more' >&2; echo 'there is no GPU to watch' >&2; exit 1", Watching{Restarts: -1}, nil,
			[]string{"note: GPU GPU-a is not watched any more | dmesg", `warning: no longer watched for XID and ECC errors: gangrun-nvml was started 1 times, and it ended with status 1 and said "there is no GPU to watch" | events`}, 1},
		"dies once": {`[ $(wc -l < started) = 1 ] && kill -SEGV $$; ` + xid79 + stay, quick, []nvml.Event{xid}, nil, 2},
		"ends again and again": {"echo 'gangrun-nvml: error: there is no GPU to watch' >&2; exit 1", quick, nil,
			[]string{`warning: are not watched for XID and ECC errors: gangrun-nvml was started 4 times, and it ended with status 1 and said "gangrun-nvml: error: there is no GPU to watch" | gangrun-nvml events`}, 4},
		"tells, and dies again and again": {alive + "kill -SEGV $$", Watching{Restarts: -1, Pause: time.Millisecond}, nil,
			[]string{"warning: are no longer watched for XID and ECC errors: gangrun-nvml was started 1 times, and it crashed (segmentation fault) | events"}, 1},
		"prints rubbish": {"echo hello; " + stay, quick, nil, []string{`warning: printed what is no event: invalid character 'h' looking for beginning of value: "hello" |`}, 4},
		"prints without an end of line": {"yes | tr -d '\\n'", quick, nil,
			[]string{"warning: a line of more than 4096 bytes |"}, 4},
		"closes its output and stays": {alive + "exec >&- 2>&-; " + stay, quick, nil, []string{"warning: was ended by signal killed |"}, 4},
		"hangs":                       {alive + stay, silent, nil, []string{"warning: hangs: gangrun-nvml has printed nothing for 200ms and was killed | NVRM", "warning: no longer watched |"}, 3},
		"is stopped":                  {alive + "kill -STOP $$; " + stay, silent, nil, []string{"warning: the GPU driver hangs | reboot", "warning: was started 3 times, and gangrun-nvml has printed nothing |"}, 3},
		"does not listen":             {"trap '' TERM INT HUP; echo 'stuck in ioctl' >&2; " + alive + "while :; do :; done", silent, nil, []string{`warning: was killed; it had said "stuck in ioctl" | reboot`, "warning: no longer |"}, 3},
		"never begins": {stay, Watching{Start: 200 * time.Millisecond, Silence: 50 * time.Millisecond, Pause: time.Millisecond, Restarts: -1}, nil,
			[]string{"warning: hangs: gangrun-nvml has printed nothing for 200ms | dmesg", "warning: are not watched for XID and ECC errors: gangrun-nvml was started 1 times |"}, -1},
		"hangs once": {"[ $(wc -l < started) = 1 ] && { " + alive + "kill -STOP $$; }; " + xid79 + "while " + alive + "do sleep 0.02; done",
			Watching{Start: time.Minute, Silence: 2 * time.Second, Pause: time.Millisecond}, []nvml.Event{xid}, []string{"warning: the GPU driver hangs | reboot"}, 2},
		"has a child of its own": {"sleep 600 & " + xid79 + "wait", quick, []nvml.Event{xid}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, dir, stop := watchHost(t, test.with, begin+test.script)
			w.until(t, len(test.events), len(test.findings))
			stop()
			for i, e := range w.events {
				if age := time.Since(e.Time); age < 0 || age > time.Hour {
					t.Errorf("an event of %v", e.Time)
				}
				w.events[i].Time = time.Time{}
			}
			if !reflect.DeepEqual(w.events, test.events) {
				t.Errorf("events %+v, want %+v", w.events, test.events)
			}
			pids := started(t, dir)
			if len(pids) != test.starts && (test.starts >= 0 || len(pids) > -test.starts) {
				t.Errorf("it was started %d times, want %d", len(pids), test.starts)
			}
			for _, pid := range pids {
				if err := unix.Kill(-pid, 0); !errors.Is(err, unix.ESRCH) && !dying(-pid) {
					t.Errorf("of the process group %d something is left: %v", pid, err)
				}
			}
			compareWatch(t, w.findings, test.findings)
		})
	}
}

// dying reports whether a process group ends soon. Other processes reap its members other than the leader.
func dying(pid int) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
			return true
		}
	}
	return false
}

// compareWatch does for the findings of Watch what compare does, but in order.
func compareWatch(t *testing.T, findings []job.Finding, want []string) {
	t.Helper()
	for i := range findings {
		if hung := strings.Contains(findings[i].Text, "the GPU driver hangs"); (findings[i].Check == CheckHung) != hung || !hung && findings[i].Check != CheckWatch {
			t.Errorf("%+v", findings[i])
		}
		findings[i].Check = Check
	}
	compare(t, findings, want)
}

func TestWatchNothing(t *testing.T) {
	t.Parallel()
	w, _, _ := watchHost(t, Watching{}, "")
	w2, dir, _ := watchHost(t, Watching{GPUs: []string{}}, begin+stay)
	for _, w := range []*heard{w, w2} {
		select {
		case <-w.change: // Watch has returned
		case <-time.After(time.Minute):
			t.Fatal("there is nothing to watch, and it has not returned after a minute")
		}
	}
	if len(started(t, dir)) > 0 || len(w.findings)+len(w2.findings) > 0 {
		t.Errorf("%+v, %+v", w.findings, w2.findings)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Watch(ctx, Watching{Path: dir, GPUs: []string{"GPU-a"}}, nil, nil)
	if len(started(t, dir)) > 0 {
		t.Error("it was started though ctx was done")
	}
}

func TestWatchCannotStart(t *testing.T) {
	t.Parallel()
	w, _, stop := watchHost(t, Watching{NVML: "/nonexistent/gangrun-nvml", Pause: time.Millisecond}, "")
	w.until(t, 0, 1)
	stop()
	compareWatch(t, w.findings, []string{"warning: started 4 times, and cannot be started: | gangrun-nvml events"})
}

// TestWatchStuck checks that Watch gives up on a child that cannot be killed, and starts no other one.
func TestWatchStuck(t *testing.T) {
	t.Parallel()
	dir := host(t, map[string]string{"gangrun-nvml": begin + alive + stay})
	var left int
	var findings []job.Finding
	w := &watch{
		Watching: Watching{GPUs: []string{"GPU-a"}, Start: time.Minute, Silence: 100 * time.Millisecond, Restarts: 3, Pause: time.Millisecond},
		path:     filepath.Join(dir, "gangrun-nvml"), kill: func(pid int) { left = pid },
		report: func(e nvml.Event) { t.Errorf("%+v", e) }, say: func(f job.Finding) { findings = append(findings, f) },
	}
	w.run(t.Context())
	if pids := started(t, dir); len(pids) != 1 || pids[0] != left {
		t.Errorf("started %v, left %d", pids, left)
	}
	kill(left)
	if _, err := unix.Wait4(left, nil, 0, nil); err != nil {
		t.Error(err)
	}
	compareWatch(t, findings, []string{"warning: the GPU driver hangs: gangrun-nvml does not end and cannot even be killed; gangrun has left it behind as pid " + strconv.Itoa(left) + " | reboot", "warning: no longer watched |"})
}

// TestWatchHeldUp checks that a child is blamed for the time in which it prints nothing, but not for the time
// in which nobody reads its messages.
func TestWatchHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken, words := 0, make(chan message)
		var last time.Time
		w := &watch{Watching: Watching{GPUs: []string{"GPU-a"}, Start: Silence, Silence: Silence}, report: func(nvml.Event) {
			if taken++; taken%5 == 1 {
				time.Sleep(10*Silence + time.Millisecond) // a little more, so that the times differ from all others
			}
			last = time.Now()
		}}
		go func() {
			for range 20 {
				time.Sleep(Silence/3 + time.Millisecond)
				words <- message{event: nvml.Event{Kind: nvml.EventXID, UUID: "GPU-a", XID: 79}}
			}
		}()
		if end := w.listen(t.Context(), words); !end.hung || taken != 20 {
			t.Errorf("%d events were taken: %+v", taken, end)
		}
		if silent := time.Since(last); silent < Silence-Silence/4 || silent > Silence {
			t.Errorf("it was blamed after %v", silent)
		}
	})
}

func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		`{"time":"2026-11-21T10:00:00.5Z","kind":"xid","uuid":"GPU-11111111-aaaa-bbbb-cccc-000000000001","pci":"0000:3b:00.0","xid":79,"text":"GPU instance 3"}` + "\n",
		`{"time":"2026-11-21T10:00:00Z","kind":"alive"}` + "\n" + `{"kind":"ecc-single","uuid":"GPU-a"}` + "\n" + `{"kind":"ecc-double"`,
		`{"kind":"xid","xid":-1}` + "\n", `{"kind":"xid","xid":1e9}` + "\n", `{"kind":"ecc-single","xid":3}` + "\n", `{"kind":""}` + "\n",
		`{"kind":"xid","uuid":"\u001b[31m"}` + "\n", `{"kind":"xid","pci":"00000000:3B:00.0","text":"\u001b]0;x\u0007` + strings.Repeat("é", 300) + `"}` + "\n",
		"null\n", "[]\n", "\n", "hello\n", `{"time":"yesterday","kind":"xid"}` + "\n", strings.Repeat("x", maxLine+1),
		`{"kind":"thermal","celsius":104}` + "\n" + `{"kind":"alive"}` + "\n",
		`{"kind":"process","uuid":"GPU-a","pid":4242}` + "\n" + `{"kind":"looked"}` + "\n", `{"kind":"process"}` + "\n", `{"kind":"xid","pid":1}` + "\n", `{"kind":"process","pid":1e9}` + "\n",
		`{"kind":"sample","uuid":"GPU-a","sample":{"utilisation":93,"throttle":["\u001b"],"recovery":"reset"}}` + "\n" + `{"kind":"lost","uuid":"GPU-a","text":"GPU is lost"}` + "\n", `{"kind":"sample"}` + "\n", `{"kind":"xid","sample":{}}` + "\n",
		`{"kind":"process","uuid":"GPU-a","pid":4242,"origin":{"name":"python","uid":0,"ancestors":[7,1]}}` + "\n", `{"kind":"xid","origin":{}}` + "\n",
	} {
		f.Add(seed, 7)
	}
	f.Fuzz(func(t *testing.T, text string, piece int) {
		read := func(r *pieces) (events []nvml.Event, err error) {
			err = readEvents(r, func(e nvml.Event) { events = append(events, e) })
			return events, err
		}
		events, err := read(&pieces{text, len(text) + 1})
		for _, e := range events {
			pci := e.PCI
			if pci != "" {
				pci, _ = nvml.BusID(e.PCI)
			}
			switch {
			case e.Kind != nvml.EventXID && e.Kind != nvml.EventECCSingle && e.Kind != nvml.EventECCDouble && e.Kind != nvml.EventAlive && e.Kind != nvml.EventProcess && e.Kind != nvml.EventLooked && e.Kind != nvml.EventSample && e.Kind != nvml.EventLost,
				(e.Kind == nvml.EventSample) != (e.Sample != nil), e.Sample != nil && shown(strings.Join(e.Sample.Throttle, "")+e.Sample.Recovery) != strings.Join(e.Sample.Throttle, "")+e.Sample.Recovery,
				e.Origin != nil && (e.Kind != nvml.EventProcess || len(e.Origin.Ancestors) > maxAncestors || shown(e.Origin.Name) != e.Origin.Name),
				(e.Kind == nvml.EventProcess) != (e.PID > 0), e.PID < 0, e.PID > maxPID,
				e.XID < 0, e.XID >= maxXID, e.Kind != nvml.EventXID && e.XID != 0, len(e.UUID) > maxName, len(e.Text) > maxText,
				shown(e.Text) != e.Text, shown(e.UUID) != e.UUID, pci != e.PCI:
				t.Errorf("%+v", e)
			}
		}
		if lines := strings.Count(text, "\n"); len(events) > lines {
			t.Errorf("%d events of %d lines", len(events), lines)
		}
		// It does not matter in which pieces the text comes.
		again, errAgain := read(&pieces{text, max(1, piece%100)})
		if !reflect.DeepEqual(events, again) || (err == nil) != (errAgain == nil) {
			t.Errorf("%+v, %v; in pieces %+v, %v", events, err, again, errAgain)
		}
		var warnings []string
		last := readWarnings(&pieces{text, max(1, piece%100)}, func(text string) { warnings = append(warnings, text) })
		if len(last) > maxLine || len(warnings) > strings.Count(text, warningPrefix) {
			t.Errorf("%d warnings, last %q", len(warnings), last)
		}
	})
}

// pieces is a reader that returns a fixed number of bytes at a time.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.text)
	p.text = p.text[n:]
	return n, nil
}
