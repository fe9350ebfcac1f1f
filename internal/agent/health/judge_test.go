package health

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

const gib = 1 << 30

// TestMemory simulates the memory of a control group of 16 GiB, with a sample every 5 s.
func TestMemory(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		used func(i int) float64 // GiB that are used at sample i
		n    int
		want string // the text of the first sign; "" if there must be no sign
		most int    // the largest number of signs
	}{
		"stable at 95 %":             {used: func(int) float64 { return 15.2 }, n: 1000},
		"noise at 95 %":              {used: func(int) float64 { return 15.2 + random.NormFloat64()*0.05 }, n: 2000},
		"noise at 99 %":              {used: func(int) float64 { return 15.85 + random.NormFloat64()*0.01 }, n: 2000},
		"a jump to 95 %":             {used: func(i int) float64 { return []float64{2, 15.2}[min(1, i/100)] }, n: 200},
		"grows, but has much left":   {used: func(i int) float64 { return math.Min(14, float64(i)*0.05) }, n: 1000},
		"grows slowly":               {used: func(i int) float64 { return 14.5 + float64(i)*0.0001 }, n: 1000},
		"falls":                      {used: func(i int) float64 { return 16 - float64(i)*0.001 }, n: 500},
		"slow waves":                 {used: func(i int) float64 { return 15 + 0.3*math.Sin(float64(i)/20) }, n: 3000, most: 3},
		"waves of evaluations":       {used: func(i int) float64 { return 15 + 0.3*math.Sin(float64(i)/8) }, n: 1000},
		"levels off":                 {used: func(i int) float64 { return 14 - 12*math.Exp(-float64(i)/20) }, n: 500},
		"grows by 24 MiB a sample":   {used: func(i int) float64 { return 12 + float64(i)*0.0234 }, n: 150, most: 4, want: "the memory of rank 3 runs out: 90 % of 16 GiB is used, and at this rate it is full in about 6 min (/kubepods/pod1)"},
		"grows by 1 GiB a sample":    {used: func(i int) float64 { return 5 + float64(i) }, n: 11, most: 1, want: "the memory of rank 3 runs out: 93 % of 16 GiB is used, and at this rate it is full in a few seconds (/kubepods/pod1)"},
		"grows with noise":           {used: func(i int) float64 { return 13 + float64(i)*0.03 + random.NormFloat64()*0.02 }, n: 95, most: 4, want: "the memory of rank 3 runs out"},
		"stays for long, then grows": {used: func(i int) float64 { return 15 + math.Max(0, float64(i-300))*0.04 }, n: 322, most: 4, want: "the memory of rank 3 runs out"},
	} {
		t.Run(name, func(t *testing.T) {
			j := NewJudge()
			at := time.Unix(1e9, 0)
			var signs []Sign
			for i := range c.n {
				used := min(16, c.used(i))
				signs = append(signs, j.Judge(at, Sample{Memory: []Memory{{Group: "/kubepods/pod1", Ranks: []int{3}, Limit: 16 * gib, Used: int64(used * gib)}}})...)
				at = at.Add(Period)
			}
			if len(signs) > c.most || c.want != "" && len(signs) == 0 {
				t.Fatalf("%d signs: %+v", len(signs), signs)
			}
			if c.want == "" {
				return
			}
			s := signs[0]
			if !strings.HasPrefix(s.Text, c.want) || s.Sign != job.HealthMemory || s.Severity != job.SeverityWarning || fmt.Sprint(s.Ranks) != "[3]" || s.Hint == "" {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestTimeLeft checks that the first sign has the time left until the memory is full, to a fifth.
func TestTimeLeft(t *testing.T) {
	for _, rate := range []float64{2, 10, 50, 200} { // MiB a second
		j := NewJudge()
		at := time.Unix(1e9, 0)
		told := false
		for used := 10.0 * 1024; used < 16*1024 && !told; used += rate * Period.Seconds() {
			for _, s := range j.Judge(at, Sample{Memory: []Memory{{Limit: 16 * gib, Used: int64(used) << 20}}}) {
				told = true
				real := time.Duration((16*1024 - used) / rate * float64(time.Second))
				if d := time.Duration(s.Left); d < real*4/5-time.Second || d > real*6/5+time.Second {
					t.Errorf("at %g MiB/s: %v left, and really %v", rate, d, real)
				}
			}
			at = at.Add(Period)
		}
		if !told {
			t.Errorf("at %g MiB/s: no sign before the memory was full", rate)
		}
	}
}

// TestDisk simulates file systems, with a sample every 5 s.
func TestDisk(t *testing.T) {
	checkpoints := func(gb, every int, keep int) func(i int) float64 {
		return func(i int) float64 { // a checkpoint is written during 4 samples, and then the oldest is removed
			n, in := i/every, i%every
			done := math.Min(float64(n), float64(keep))
			if in < 4 {
				return (done + float64(in)/4) * float64(gb)
			}
			return math.Min(float64(n+1), float64(keep)) * float64(gb)
		}
	}
	for name, c := range map[string]struct {
		use  Use
		size float64 // GiB
		used func(i int) float64
		n    int
		want string // "severity text" of the first sign; "" if there must be no sign
		at   int    // the sample that shows the first sign
		most int
	}{
		"empty":                   {use: UseTemporary, size: 100, used: func(int) float64 { return 1 }, n: 500},
		"stable at 98 %":          {use: UseTemporary, size: 100, used: func(int) float64 { return 98 }, n: 500},
		"full":                    {use: UseTemporary, size: 100, used: func(int) float64 { return 99.9 }, n: 500, most: 1, want: "error the file system of /x (temporary files) is full: 102 MiB of 100 GiB is free"},
		"large, 20 GiB free":      {use: UseLogs, size: 10000, used: func(int) float64 { return 9980 }, n: 500},
		"grows slowly":            {use: UseLogs, size: 100, used: func(i int) float64 { return 50 + float64(i)*0.01 }, n: 1000},
		"fills up":                {use: UseTemporary, size: 100, used: func(i int) float64 { return 50 + float64(i)*0.25 }, n: 200, most: 5, at: 23, want: "warning the file system of /x (temporary files) fills up: 44 GiB of 100 GiB is free, and at this rate it is full in about 15 min"},
		"shared memory":           {use: UseShared, size: 1, used: func(i int) float64 { return float64(i) * 0.01 }, n: 101, most: 5, at: 23, want: "warning the file system of /x (shared memory) fills up: 788 MiB of 1.0 GiB is free, and at this rate it is full in about 6 min"},
		"checkpoints, room":       {use: UseCheckpoints, size: 1000, used: checkpoints(40, 100, 1e6), n: 500},
		"checkpoints, all kept":   {use: UseCheckpoints, size: 500, used: checkpoints(40, 100, 1e6), n: 1200},
		"checkpoints, three kept": {use: UseCheckpoints, size: 170, used: checkpoints(40, 100, 3), n: 3000},
		"checkpoints, slow":       {use: UseCheckpoints, size: 1450, used: func(i int) float64 { return 500 + 3*math.Min(100, math.Max(0, float64(i-50))) }, n: 170},
		"checkpoints, endless":    {use: UseCheckpoints, size: 1000, used: func(i int) float64 { return 500 + 3*float64(i) }, n: 166, most: 4, at: 143, want: "warning the file system of /x (the checkpoint directory) fills up: 71 GiB of 1000 GiB is free, and at this rate it is full in about 2 min"},
	} {
		t.Run(name, func(t *testing.T) {
			j := NewJudge()
			at := time.Unix(1e9, 0)
			var signs []Sign
			first := 0
			for i := range c.n {
				free := max(0, c.size-c.used(i))
				found := j.Judge(at, Sample{Disks: []Disk{{Path: "/x", Use: c.use, Size: int64(c.size * gib), Free: int64(free * gib), Inodes: 100, FreeInodes: 10}}})
				if len(signs) == 0 && len(found) > 0 {
					first = i
				}
				signs = append(signs, found...)
				at = at.Add(Period)
			}
			if len(signs) > c.most || c.want != "" && len(signs) == 0 {
				t.Fatalf("%d signs: %+v", len(signs), signs)
			}
			if c.want == "" {
				return
			}
			s := signs[0]
			want := job.HealthDiskFull
			if c.use == UseShared {
				want = job.HealthSharedFull
			}
			if got := string(s.Severity) + " " + s.Text; !strings.HasPrefix(got, c.want) || s.Sign != want || s.Hint == "" || first != c.at {
				t.Errorf("at %d: %+v, %v", first, got, s)
			}
		})
	}
}

func TestDiskOtherwise(t *testing.T) {
	j := NewJudge()
	at := time.Unix(1e9, 0)
	d := Disk{Path: "/x", Use: UseLogs, Size: 100 * gib, Free: 50 * gib, Inodes: 1000}
	signs := j.Judge(at, Sample{Disks: []Disk{d}})
	if len(signs) != 1 || signs[0].Text != "the file system of /x (the directory of the logs) can hold no more files: it has 1000" || signs[0].Severity != job.SeverityError {
		t.Errorf("%+v", signs)
	}
	signs = nil
	for stuck := time.Second; stuck < 3*time.Minute; stuck += 5 * time.Second {
		at = at.Add(Period)
		signs = append(signs, j.Judge(at, Sample{Disks: []Disk{{Path: "/x", Use: UseLogs, Stuck: stuck}}})...)
	}
	if len(signs) != 1 || signs[0].Sign != job.HealthFrozen || signs[0].Text != "the file system of /x (the directory of the logs) has not answered for 31s: programs that use it hang" {
		t.Errorf("%+v", signs)
	}
	for i := range 2 * maxStates { // the number of file systems that are remembered is bounded
		j.Judge(at, Sample{Disks: []Disk{{Path: fmt.Sprint(i)}}})
	}
	if len(j.disks) > maxStates {
		t.Errorf("%d file systems are followed", len(j.disks))
	}
}

func TestWords(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 16 * gib: "16 GiB", 1536 * gib: "1.5 TiB", math.MaxInt64: "8192 PiB"} {
		if got := size(bytes); got != want {
			t.Errorf("%d: %q, want %q", bytes, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "a few seconds", 34 * time.Second: "about 30 s", 4*time.Minute + 20*time.Second: "about 4 min"} {
		if got := about(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
