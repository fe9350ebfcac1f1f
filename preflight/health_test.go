package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// speed returns the speed of a part.
func speed(kind job.SpeedKind, host, of string, value float64) job.Speed {
	return job.Speed{Host: host, Kind: kind, Of: of, Value: value}
}

// farLinks returns the speeds of the links between n hosts: 1 GB/s and 0.1 ms, except for those links for which
// slow returns true.
func farLinks(n int, slow func(from, to int) bool) (all []job.Speed) {
	for i := 1; i <= n; i++ {
		for j := 1; j <= n; j++ {
			if i == j {
				continue
			}
			v := 1e9
			if slow(i, j) {
				v = 12.5e6
			}
			all = append(all, speed(job.SpeedLink, fmt.Sprint("h", i), fmt.Sprint("h", j), v))
		}
	}
	return all
}

func TestSlow(t *testing.T) {
	gpus := []job.Speed{}
	for i := range 8 {
		s := speed(job.SpeedMatmul, fmt.Sprint("h", i/4+1), fmt.Sprint("GPU ", i%4), 600e12)
		s.Model = "NVIDIA H100"
		gpus = append(gpus, s)
	}
	with := func(value float64) []job.Speed {
		list := slices.Clone(gpus)
		list[6].Value = value
		return list
	}
	busy := gpus[3]
	busy.Value, busy.Error = 0, "it is in use"
	for name, test := range map[string]struct {
		speeds   []job.Speed
		severity job.Severity
		host     string
		says     string // several, with | between them
	}{
		"nothing":    {nil, "", "", ""},
		"well":       {farLinks(4, func(a, b int) bool { return false }), "", "", ""},
		"host":       {farLinks(4, func(a, b int) bool { return a == 3 || b == 3 }), job.SeverityWarning, "h3", "the network link of h3 is slow: it receives 12 MB/s at most and it sends 12 MB/s at most; the median of 4 hosts is 1.0 GB/s, 80 times as fast"},
		"pair":       {farLinks(4, func(a, b int) bool { return a == 3 && b == 1 }), job.SeverityWarning, "", "the network link between h3 and h1 is slow, but not those to other hosts: 12 MB/s from h3 to h1"},
		"two hosts":  {farLinks(2, func(a, b int) bool { return a == 1 }), job.SeverityWarning, "", "the network link is not equally fast on h1 and h2: 12 MB/s from h1 to h2 and 1.0 GB/s from h2 to h1; which of them is wrong is not clear"},
		"core":       {[]job.Speed{speed(job.SpeedCPU, "h1", "core 0", 3e8), speed(job.SpeedCPU, "h1", "core 1", 3e8), speed(job.SpeedCPU, "h2", "core 0", 1e8), speed(job.SpeedCPU, "h2", "core 1", 3e8)}, job.SeverityWarning, "h2", "the CPU (core 0) of h2 is slow: 100 Mturns/s; the median of 4 cores is 300 Mturns/s, 3.0 times as fast"},
		"disk":       {[]job.Speed{speed(job.SpeedCheckpoint, "h1", "/c", 3e8), speed(job.SpeedCheckpoint, "h2", "/c", 3e8), speed(job.SpeedCheckpoint, "h3", "/c", 1e6)}, job.SeverityWarning, "h3", `the disk of the checkpoint directory "/c" of h3 is slow: 1.0 MB/s; the median of 3 hosts is 300 MB/s, 300 times`},
		"GPU":        {with(100e12), job.SeverityWarning, "h2", "GPU 2, matrix multiplication (NVIDIA H100) of h2 is slow: 100 TFLOP/s; the median of 8 GPUs is 600 TFLOP/s, 6.0 times as fast"},
		"GPU, bit":   {with(420e12), job.SeverityNote, "h2", "420 TFLOP/s"},
		"trips":      {[]job.Speed{speed(job.SpeedTrips, "h1", "h2", 10000), speed(job.SpeedTrips, "h1", "h3", 100), speed(job.SpeedTrips, "h2", "h3", 100)}, job.SeverityWarning, "h3", "a round trip over the network of h3 is slow: 10.00 ms; the median of 3 hosts is 0.10 ms"},
		"unmeasured": {[]job.Speed{busy}, job.SeverityNote, "h1", "not measured on h1: gpu-matmul GPU 3: it is in use"},
	} {
		findings := Slow(test.speeds, 4)
		if test.severity == "" {
			if len(findings) > 0 {
				t.Errorf("%s: got %+v", name, findings)
			}
			continue
		}
		if len(findings) != 1 {
			t.Errorf("%s: got %d findings: %+v", name, len(findings), findings)
			continue
		}
		f := findings[0]
		if f.Check != "health" || f.Severity != test.severity || f.Cause != nil || f.Hint == "" || !strings.Contains(f.Text, test.says) || strings.Contains(f.Text+f.Hint, "{") {
			t.Errorf("%s: got %+v\nwant %s %q", name, f, test.severity, test.says)
		}
		if test.host != "" && f.Host != test.host {
			t.Errorf("%s: blames %q, want %q", name, f.Host, test.host)
		}
	}
}

// TestCheckMeasures: the hosts are measured only if the job asks for it, and not after an error.
func TestCheckMeasures(t *testing.T) {
	links := farLinks(4, func(a, b int) bool { return a == 3 || b == 3 })
	for name, test := range map[string]struct {
		health   job.HealthMode
		breaks   func([]job.Facts)
		measured bool
	}{
		"off":       {job.HealthOff, func([]job.Facts) {}, false},
		"empty":     {"", func([]job.Facts) {}, false},
		"quick":     {job.HealthQuick, func([]job.Facts) {}, true},
		"after err": {job.HealthQuick, func(f []job.Facts) { f[0].Workdir.Kind = job.ErrorMissing }, false},
	} {
		facts := soundFacts(4)
		test.breaks(facts)
		s := &fakeSurveyor{facts: facts, speeds: links}
		p := &Preflight{Surveyor: s, LogDir: "/logs"}
		spec := testSpec()
		spec.Health, spec.Preflight, spec.GPUs, spec.CheckpointDir = test.health, job.PreflightStatic, 0, "/c"
		findings, err := p.Check(t.Context(), spec, func(job.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		named := slices.ContainsFunc(findings, func(f job.Finding) bool { return f.Check == "health" && f.Host == "h3" })
		if (len(s.measures) == 1) != test.measured || named != test.measured {
			t.Errorf("%s: asked %+v, found %+v", name, s.measures, findings)
		}
		if test.measured {
			m := s.measures[0]
			if m.LogDir != "/logs" || m.CheckpointDir != "/c" || slices.Contains(m.Kinds, job.SpeedMatmul) || !slices.Contains(m.Kinds, job.SpeedLink) || m.Python != facts[0].Program.Path {
				t.Errorf("%s: asked %+v", name, m)
			}
			spec.GPUs = 1
			if m := p.measures(spec, facts); !slices.Contains(m.Kinds, job.SpeedMatmul) {
				t.Errorf("of ranks with GPUs: asked %+v", m)
			}
		}
	}
}

func TestCheckCannotMeasure(t *testing.T) {
	s := &brokenMeasure{fakeSurveyor{facts: soundFacts(2)}}
	spec := testSpec()
	spec.Health, spec.Preflight = job.HealthQuick, job.PreflightStatic
	if _, err := (&Preflight{Surveyor: s}).Check(t.Context(), spec, func(job.Event) {}); err == nil || !strings.Contains(err.Error(), "cannot measure the hosts: the agent of h2 has died") {
		t.Errorf("got %v", err)
	}
}

// brokenMeasure is a Surveyor that cannot measure.
type brokenMeasure struct{ fakeSurveyor }

func (*brokenMeasure) Measure(_ context.Context, _ job.Measure) ([]job.Speed, error) {
	return nil, errors.New("the agent of h2 has died")
}
