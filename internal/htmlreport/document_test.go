package htmlreport

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/vitals"
)

// shots has the screenshots of docs/report.md.
var shots = []struct {
	width, height int
	dark          bool
}{{1280, 1560, false}, {1280, 1560, true}, {400, 1900, false}, {400, 1900, true}}

// mostShots is the maximum size of all screenshots together, in bytes.
const mostShots = 300_000

func shotName(width int, dark bool) string {
	if dark {
		return fmt.Sprintf("report-%d-dark.png", width)
	}
	return fmt.Sprintf("report-%d-light.png", width)
}

// TestDocumentScreenshots checks that docs/report.md shows the screenshots, and that they have the right size.
// With UPDATE=1, it makes the screenshots with Chromium, which "make docs" installs.
func TestDocumentScreenshots(t *testing.T) {
	const docs = "../../docs"
	if os.Getenv("UPDATE") != "" {
		page := filepath.Join(t.TempDir(), "report.html")
		if err := os.WriteFile(page, []byte(examplePage(t)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, s := range shots {
			shoot(t, page, filepath.Join(docs, shotName(s.width, s.dark)), s.width, s.height, s.dark)
		}
	}
	text, err := os.ReadFile(filepath.Join(docs, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	bytesOf := 0
	for _, s := range shots {
		name := shotName(s.width, s.dark)
		data, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Fatal(err)
		}
		bytesOf += len(data)
		config, err := png.DecodeConfig(bytes.NewReader(data))
		if err != nil || config.Width != s.width || config.Height != s.height {
			t.Errorf("docs/%s is %d by %d (%v), want %d by %d: run make docs", name, config.Width, config.Height, err, s.width, s.height)
		}
		if !strings.Contains(string(text), "("+name+")") {
			t.Errorf("docs/report.md does not show %s", name)
		}
	}
	if bytesOf > mostShots {
		t.Errorf("the screenshots have %d bytes, want at most %d", bytesOf, mostShots)
	}
}

// shoot makes a screenshot of the upper part of a page.
func shoot(t *testing.T, page, to string, width, height int, dark bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	scheme := 1
	if dark {
		scheme = 0
	}
	raw := filepath.Join(t.TempDir(), "raw.png")
	out, err := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir="+t.TempDir(),
		fmt.Sprintf("--blink-settings=preferredColorScheme=%d", scheme), fmt.Sprintf("--window-size=%d,%d", width, height), "--screenshot="+raw, "file://"+page).CombinedOutput()
	if err != nil {
		t.Fatalf("chromium: %v\n%s", err, out)
	}
	data, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, reduced(picture)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, small.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// reduced returns a picture with at most 256 colours. It keeps the most frequent colours, and replaces each
// other colour by the nearest of them.
func reduced(in image.Image) image.Image {
	counts := map[color.RGBA]int{}
	each := func(do func(x, y int, c color.RGBA)) {
		for y := in.Bounds().Min.Y; y < in.Bounds().Max.Y; y++ {
			for x := in.Bounds().Min.X; x < in.Bounds().Max.X; x++ {
				r, g, b, _ := in.At(x, y).RGBA()
				do(x, y, color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0xff})
			}
		}
	}
	each(func(_, _ int, c color.RGBA) { counts[c]++ })
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	out := image.NewPaletted(in.Bounds(), nil)
	for _, c := range colours[:min(len(colours), 256)] {
		out.Palette = append(out.Palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	each(func(x, y int, c color.RGBA) {
		i, ok := nearest[c]
		if !ok {
			i = uint8(out.Palette.Index(c))
			nearest[c] = i
		}
		out.SetColorIndex(x, y, i)
	})
	return out
}

// examplePage returns the page of a realistic run with 16 ranks on two hosts. One attempt loses a connection,
// one hangs, and one succeeds.
func examplePage(t *testing.T) string {
	random := rand.New(rand.NewPCG(1, 2))
	p := gang(16)
	for i := range p.Hosts {
		h := &p.Hosts[i]
		name := fmt.Sprintf("dgx-%02d", 3+i)
		for j := range p.Ranks {
			if p.Ranks[j].Host == h.Name {
				p.Ranks[j].Host = name
			}
		}
		h.Name, h.Rack, h.Switch = name, "r1", "s2"
	}
	events := []job.Event{
		{Time: start, Kind: job.KindCreated, Run: "20261126-090000-pretrain-4c1e", Spec: &job.Spec{Name: "pretrain", Ranks: 16, Command: []string{"python3", "train.py"}}},
		state(0, job.StatePreflight),
		{Time: after(20), Kind: job.KindFinding, Finding: &job.Finding{Check: "clock", Severity: job.SeverityWarning, Host: "dgx-04", Text: "its clock is 1.4 s behind that of dgx-03", Hint: "logs of both hosts are hard to compare: have chrony or ntpd run there"}},
		state(95, job.StateWaiting),
	}
	curves := make([]Curves, 3)
	train := func(number int, from, to, first, last int64) {
		c := &curves[number-1]
		*c = Curves{Attempt: number, Loss: Curve{Name: "lm loss"}, Throughput: Curve{Name: "tokens per second", Higher: true}}
		for step := first; step <= last; step++ {
			seconds := float64(from) + float64(to-from)*float64(step-first)/float64(last-first)
			loss := 1.9 + 8.5*math.Exp(-float64(step)/420) + random.NormFloat64()*0.05
			if step > 1500 && step < 1540 {
				loss += 2.2 * math.Exp(-math.Abs(float64(step)-1510)/8)
			}
			speed := 182000 + random.NormFloat64()*2500
			if number == 3 && step > 2150 && step < 2330 {
				speed *= 0.8
			}
			c.Loss.Points = append(c.Loss.Points, Point{float64(step), loss})
			c.Throughput.Points = append(c.Throughput.Points, Point{float64(step), speed})
			if step%25 == 0 {
				for rank := range 16 {
					events = append(events, progress(number, rank, seconds, step, loss))
				}
			}
		}
	}
	add := func(seconds float64, number int, e job.Event) {
		e.Time, e.Attempt = after(seconds), number
		events = append(events, e)
	}
	saved := func(seconds float64, number int, step int64) {
		add(seconds, number, job.Event{Kind: job.KindCheckpoint, Checkpoint: &job.Checkpoint{Path: fmt.Sprintf("/data/ckpt/step-%d", step), Step: step, Time: after(seconds - 30)}})
	}
	exits := func(first job.Exit) (all []job.Exit) {
		all = append(all, first)
		for rank := range 16 {
			if rank != first.Rank {
				x := job.Exit{Rank: rank, Host: p.Ranks[rank].Host, Status: job.Signalled, Signal: 15, Stopped: true}
				if first.Good() {
					x = job.Exit{Rank: rank, Host: p.Ranks[rank].Host, Status: job.Exited}
				}
				all = append(all, x)
			}
		}
		return all
	}
	begin := func(number int, seconds float64) {
		events = append(events, attemptEvents(number, seconds, p)...)
	}
	begin(1, 240)
	train(1, 265, 2400, 1, 960)
	broken := job.Exit{Rank: 11, Host: "dgx-04", Status: job.Exited, Code: 1}
	add(2400, 1, job.Event{Kind: job.KindExit, Exit: &broken})
	add(2400, 1, job.Event{Kind: job.KindStop, Text: "rank 11 on dgx-04 exited with code 1"})
	add(2404, 1, job.Event{Kind: job.KindOutcome, Outcome: &job.Outcome{Exits: exits(broken)}})
	saved(2404, 1, 900)
	add(2404, 1, job.Event{Kind: job.KindCause, Cause: &job.Cause{Category: job.NetworkError, Signature: "peer-closed", Rank: 11, Host: "dgx-04", Confidence: 0.85,
		Text: "RuntimeError: [../gloo/transport/tcp/pair.cc] Connection closed by peer", Hint: "look at the network between the hosts",
		Evidence: []job.Line{{Source: job.SourceStderr, File: "rank-0011.err", Line: 212, Text: "Traceback (most recent call last):"}, {Source: job.SourceStderr, File: "rank-0011.err", Line: 219, Text: "RuntimeError: [../gloo/transport/tcp/pair.cc] Connection closed by peer"}}}})
	add(2404, 1, job.Event{Kind: job.KindVerdict, Verdict: &job.Verdict{Action: job.Restart, Reason: "network-error may pass: restarting (restart 1 of 3)"}})
	begin(2, 2470)
	train(2, 2500, 5200, 901, 2090)
	add(4100, 2, job.Event{Kind: job.KindHealth, Host: "dgx-03", Health: &job.Health{Sign: job.HealthDiskFull, Severity: job.SeverityWarning}, Text: "/data has room for 3 more checkpoints", Hint: "gangrun checkpoints --prune keep=3 /data/ckpt"})
	add(5900, 2, job.Event{Kind: job.KindHang, Text: "no step for 11 min 40 s: rank 6 on dgx-03 holds up the others", Hang: &job.HangReport{Text: "no step for 11 min 40 s: rank 6 on dgx-03 holds up the others",
		Ranks: []int{6}, Why: "it alone reads a file, and the others wait in all_reduce", Groups: []job.StackGroup{
			{Ranks: []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Where: "all_reduce (train.py:118 step)", State: job.ProcessSleeping, Frames: []job.Frame{{Function: "all_reduce", File: "distributed_c10d.py", Line: 2501}, {Function: "step", File: "train.py", Line: 118}}},
			{Ranks: []int{6}, Where: "read (loader.py:44 next_batch)", State: job.ProcessDisk, Frames: []job.Frame{{Function: "read", File: "loader.py", Line: 44}, {Function: "step", File: "train.py", Line: 101}}}}}})
	add(5901, 2, job.Event{Kind: job.KindStop, Text: "the gang has hung"})
	add(5930, 2, job.Event{Kind: job.KindOutcome, Outcome: &job.Outcome{Exits: exits(job.Exit{Rank: 6, Host: "dgx-03", Status: job.Signalled, Signal: 9, Stopped: true})}})
	saved(5220, 2, 2000)
	add(5930, 2, job.Event{Kind: job.KindCause, Cause: &job.Cause{Category: job.Hang, Rank: 6, Host: "dgx-03", Confidence: 0.8, Text: "it waited for a file and held up the others", Hint: "look at the file system of the data"}})
	add(5930, 2, job.Event{Kind: job.KindVerdict, Verdict: &job.Verdict{Action: job.Restart, Reason: "hang may pass: restarting (restart 2 of 3)"}})
	begin(3, 6080)
	train(3, 6110, 8400, 2001, 3000)
	add(6480, 3, job.Event{Kind: job.KindStraggler, Host: "dgx-04", Text: "rank 13 on dgx-04 makes 80 % of the steps of its peers: its GPU lowers its clocks", Straggler: &job.StragglerReport{Rank: 13, Host: "dgx-04", Speed: 0.8, Reason: job.SlowThrottle, Text: "rank 13 on dgx-04 makes 80 % of the steps of its peers: its GPU lowers its clocks"}})
	add(6700, 3, job.Event{Kind: job.KindCurve, Text: "slower: the throughput has fallen by 20 %", Curve: &job.CurveVerdict{Kind: "slower", Step: 2210}})
	add(8405, 3, job.Event{Kind: job.KindOutcome, Outcome: &job.Outcome{Exits: exits(job.Exit{Rank: 0, Host: "dgx-03", Status: job.Exited})}})
	saved(8390, 3, 3000)
	add(8405, 3, job.Event{Kind: job.KindVerdict, Verdict: &job.Verdict{Action: job.Succeed, Reason: "every rank ended well"}})
	zero := 0
	add(8410, 0, job.Event{Kind: job.KindEnded, State: job.StateSucceeded, Text: "every rank ended well", ExitCode: &zero, ExitWhy: "success"})
	slices.SortStableFunc(events, func(a, b job.Event) int { return a.Time.Compare(b.Time) })
	v := &vitals.Vitals{Attempt: 3}
	for rank := range 16 {
		cpu := 96 + random.Float64()*5
		v.Ranks = append(v.Ranks, vitals.Rank{Rank: rank, Rate: 26.1, Use: vitals.Use{CPU: &cpu, RSS: int64(41+random.IntN(3)) << 30}})
	}
	return write(t, Extra{Now: after(8411), Command: "python3 train.py --config 1b.yaml --resume auto", Curves: curves, Vitals: v}, events...)
}
