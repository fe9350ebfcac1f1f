package judge

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// drawn is a loss curve without noise.
func drawn(step int64) float64 { return 2 + 9/math.Sqrt(float64(step)+1) }

// ask returns the verdict of a kind. ok is false if there is none.
func ask(j *Judge, kind Kind) (Verdict, bool) {
	all := j.Verdicts()
	i := slices.IndexFunc(all, func(v Verdict) bool { return v.Kind == kind })
	if i < 0 {
		return Verdict{}, false
	}
	return all[i], true
}

// TestSpikes checks that a loss that falls again has not diverged. The first curve is that of BLOOM-176B from
// its public training log, in which the loss rises to 5.1 and falls again within 30 steps.
func TestSpikes(t *testing.T) {
	bloom := []float64{2.24, 2.35, 5.10, 3.49, 3.21, 2.80, 2.6, 2.5, 2.45, 2.4, 2.38, 2.35, 2.33, 2.31, 2.3, 2.3, 2.29, 2.28, 2.27, 2.26, 2.26, 2.25, 2.25, 2.24, 2.24, 2.23, 2.23, 2.23, 2.22, 2.22}
	for name, spike := range map[string]func(i int64) (float64, bool){
		"BLOOM": func(i int64) (float64, bool) {
			if i < 0 || i >= int64(len(bloom)) {
				return 0, false
			}
			return bloom[i], true
		},
		"a hundredfold value": func(i int64) (float64, bool) { return 220, i == 0 },
		"a slow return":       func(i int64) (float64, bool) { return 2.2 + 6*math.Exp(-float64(i)/400), i < 3000 },
	} {
		noise := rand.New(rand.NewPCG(1, 2))
		j := New(Setup{Total: 10000})
		for step := range int64(6000) {
			loss := drawn(step) + 0.03*noise.NormFloat64()
			if v, ok := spike(step - 2000); ok && step >= 2000 {
				loss = v
			}
			j.Add(Train, step, float64(step), loss)
			if step%20 != 0 {
				continue
			}
			if v, ok := ask(j, Diverged); ok {
				t.Errorf("%s: step %d: %+v", name, step, v)
				break
			}
		}
	}
}

// TestDivergence checks that a loss that stays high has diverged. That is sure, within a tenth of the run, only
// if the loss is many times as high as it ever was, or if the validation is worse than it was at first.
func TestDivergence(t *testing.T) {
	for _, c := range []struct {
		name       string
		high       func(i float64) float64
		validation func(loss float64) float64 // nil if there is none
		norm       float64                    // norm of the gradient after the loss has risen; 0 if it is not known
		sure       bool
	}{
		{"to a level", func(float64) float64 { return 7.5 }, nil, 0, false},
		{"above the first loss", func(float64) float64 { return 20 }, nil, 0, false},
		{"above the first loss, with an exploded gradient", func(float64) float64 { return 20 }, nil, 1e4, true},
		{"rising", func(i float64) float64 { return 3 + i/3 }, nil, 0, true},
		{"slowly", func(i float64) float64 { return min(9, 2.2+i/100) }, nil, 0, false},
		{"to a level twenty times as high", func(float64) float64 { return 200 }, nil, 0, false},
		{"exploded, and then at a level", func(i float64) float64 { return min(1e5, 3+i*i) }, nil, 0, true},
		{"exploded", func(i float64) float64 { return 1e8 * (1 + i) }, nil, 0, true},
		{"with the validation", func(float64) float64 { return 12 }, func(loss float64) float64 { return loss + 1 }, 0, true},
		{"without the validation", func(float64) float64 { return 12 }, func(float64) float64 { return 2.3 }, 0, false},
		{"exploded, without the validation", func(i float64) float64 { return 1e8 }, func(float64) float64 { return 2.3 }, 1e4, false},
	} {
		noise := rand.New(rand.NewPCG(1, 2))
		j := New(Setup{Total: 10000})
		first, sure := int64(-1), int64(-1)
		for step := range int64(4000) {
			loss, norm := drawn(step), 1.0
			if step >= 2000 {
				loss, norm = c.high(float64(step-2000)), c.norm
			}
			if c.norm > 0 {
				j.Add(GradNorm, step, float64(3600*step), norm)
			}
			j.Add(Train, step, float64(3600*step), loss+0.03*noise.NormFloat64())
			if c.validation != nil && step%50 == 0 {
				j.Add(Validation, step, float64(3600*step), c.validation(loss))
			}
			if step%20 != 0 {
				continue
			}
			if v, ok := ask(j, Diverged); ok && first < 0 {
				first = step
				if v.Since < 1990 || v.Since > step || *v.Saves != float64(10000-step) || !strings.Contains(v.Sentence, "has risen from") {
					t.Errorf("%s: %+v, saves %g", c.name, v, *v.Saves)
				}
			}
			if v, ok := ask(j, Diverged); ok && v.Sure && sure < 0 {
				sure = step
			}
		}
		if first < 2200 || first > 2900 || (sure >= 0) != c.sure || c.sure && (sure < first || sure > 3400) {
			t.Errorf("%s: found at step %d, certain at %d", c.name, first, sure)
		}
	}
}

func TestNotFinite(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name  string
		start int64 // the first value that is not finite
		n     int
		scale bool
		want  bool
	}{
		{"four", 500, 4, false, false},
		{"five", 500, 5, false, true},
		{"at the start, with a loss scale", 0, 20, true, false},
		{"at the start, with a loss scale, on and on", 0, 25, true, true},
		{"later, with a loss scale that stays", 500, 5, true, true},
	} {
		j := New(Setup{Total: 10000})
		for step := range c.start {
			if c.scale {
				j.Add(LossScale, step, float64(step), 1024)
			}
			j.Add(Train, step, float64(step), drawn(step))
		}
		for i := range c.n {
			step := c.start + int64(i)
			if c.scale && c.start == 0 {
				j.Add(LossScale, step, float64(step), math.Pow(2, float64(32-i)))
			}
			j.Add(Train, step, float64(step), []float64{nan, math.Inf(1), math.Inf(-1)}[i%3])
		}
		v, ok := ask(j, NotFinite)
		if ok != c.want || ok && (v.Since != c.start || !v.Sure) {
			t.Errorf("%s: %v, %+v", c.name, ok, v)
		}
		j.Add(Train, c.start+int64(c.n), float64(c.start)+float64(c.n), 2)
		if v, ok := ask(j, NotFinite); ok {
			t.Errorf("%s: after a finite value: %+v", c.name, v)
		}
	}
}

// TestNoRewardYet checks that a reward that is NaN gives no sure verdict: the first episode may not have ended.
func TestNoRewardYet(t *testing.T) {
	j := New(Setup{Higher: true})
	for step := range int64(20) {
		j.Add(Validation, step, float64(step), math.NaN())
	}
	if v, ok := ask(j, NotFinite); !ok || v.Sure {
		t.Errorf("got %v, %+v", ok, v)
	}
}

// TestPlateau checks which metrics without an improvement for a long time are a plateau.
func TestPlateau(t *testing.T) {
	at := func(step int64) *int64 { return &step }
	falls := func(rates ...float64) func(float64) float64 {
		return func(share float64) float64 { return rates[int(share*float64(len(rates)))] }
	}
	for _, c := range []struct {
		name    string
		settled *int64
		rate    func(share float64) float64
		end     float64 // share of the planned steps that were made
		found   bool
		sure    bool
	}{
		{"a constant rate", at(0), falls(1), 0.6, true, true},
		{"a rate that may fall", nil, falls(1), 0.6, true, false},
		{"a rate that will fall", at(8000), falls(1), 0.6, false, false},
		{"just after a fall", at(5000), falls(1, 0.1), 0.6, false, false},
		{"long after a fall", at(2500), falls(1, 0.1, 0.1, 0.1), 0.6, true, true},
		{"in a warm-up", at(0), func(share float64) float64 { return share }, 0.6, false, false},
		{"along a cosine", nil, func(share float64) float64 { return 1 + math.Cos(math.Pi*share) }, 0.6, false, false},
	} {
		noise := rand.New(rand.NewPCG(1, 2))
		j := New(Setup{Total: 10000, Settled: c.settled, Higher: true})
		for step := int64(0); float64(step) < c.end*10000; step += 50 {
			j.Add(Rate, step, float64(step), c.rate(float64(step)/10000))
			j.Add(Validation, step, float64(step), 0.8*(1-math.Exp(-float64(step)/400))+0.0002*noise.NormFloat64())
		}
		v, ok := ask(j, Plateau)
		if ok != c.found || v.Sure != c.sure {
			t.Errorf("%s: %v, %+v", c.name, ok, v)
		}
	}
	// A metric that still improves is no plateau, however slowly it improves.
	j := New(Setup{Total: 10000, Settled: at(0)})
	for step := int64(0); step < 6000; step += 50 {
		j.Add(Validation, step, float64(step), 2-float64(step)/20000)
	}
	if v, ok := ask(j, Plateau); ok {
		t.Errorf("improving: %+v", v)
	}
}

func TestFlat(t *testing.T) {
	for name, c := range map[string]struct {
		loss func(step float64) float64
		norm float64
		want bool
	}{
		"flat":          {func(float64) float64 { return 2.3 }, 0.1, true},
		"no gradient":   {func(float64) float64 { return 2.3 }, 0, true},
		"slow":          {func(step float64) float64 { return 2.3 - step/20000 }, 0.1, false},
		"learned early": {func(step float64) float64 { return 0.3 + 2*math.Exp(-step/5) }, 0.1, false},
	} {
		noise := rand.New(rand.NewPCG(1, 2))
		j := New(Setup{Total: 5000})
		for step := range int64(2500) {
			j.Add(GradNorm, step, float64(step), c.norm)
			j.Add(Train, step, float64(step), c.loss(float64(step))+0.02*noise.NormFloat64())
		}
		v, ok := ask(j, Flat)
		if ok != c.want || ok && v.Sure != (c.norm == 0) {
			t.Errorf("%s: %v, %+v", name, ok, v)
		}
	}
}

func TestTarget(t *testing.T) {
	target := func(v float64) *float64 { return &v }
	settled := int64(0)
	end := 1 + 5/math.Sqrt(10000.0)
	for _, c := range []struct {
		target  *float64
		reached bool
		miss    bool
	}{{target(1.5), true, false}, {target(end * 1.005), false, false}, {target(0.9), false, true}, {nil, false, false}} {
		noise := rand.New(rand.NewPCG(1, 2))
		j := New(Setup{Total: 10000, Settled: &settled, Target: c.target})
		for step := int64(1); step < 5000; step += 50 {
			j.Add(Validation, step, float64(step), 1+5/math.Sqrt(float64(step))+0.002*noise.NormFloat64())
		}
		v, reached := ask(j, Reached)
		if reached != c.reached || reached && (!v.Sure || v.Since < 80 || v.Since > 220) {
			t.Errorf("%v: reached %v, %+v", c.target, reached, v)
		}
		v, miss := ask(j, WillMiss)
		if miss != c.miss || miss && (v.Confidence < 0.7 || !strings.Contains(v.Sentence, "give or take")) {
			t.Errorf("%v: will miss %v, %+v", c.target, miss, v)
		}
	}
}

func TestBelowPeers(t *testing.T) {
	var earlier []Trace
	for i := range 4 {
		var tr Trace
		for step := int64(0); step < 1000; step += 10 {
			tr = append(tr, TracePoint{step, 1 + float64(i)/10 + 1/float64(step+1)})
		}
		earlier = append(earlier, tr)
	}
	for _, c := range []struct {
		level float64
		peers int
		want  bool
	}{{2, 4, true}, {1.1, 4, false}, {2, 2, false}} {
		j := New(Setup{Total: 1000, Earlier: earlier[:c.peers]})
		for step := int64(0); step < 500; step += 10 {
			j.Add(Validation, step, float64(step), c.level)
		}
		v, ok := ask(j, BelowPeers)
		if ok != c.want || v.Sure {
			t.Errorf("%+v: %v, %+v", c, ok, v)
		}
	}
}

func TestSlower(t *testing.T) {
	for name, c := range map[string]struct {
		reported bool
		late     float64 // seconds per step in the second half
		pause    bool    // there is one pause of an hour
		want     bool
		from, to int64 // the steps at which it is slow; 0 means from step 500 to the end
	}{
		"as before": {late: 1}, "a pause": {late: 1, pause: true}, "a little": {late: 1.1}, "by a third": {late: 1.5, want: true},
		"reported": {reported: true, late: 1.5, want: true}, "only at the end": {late: 3, from: 900, to: 1000}, "for a while": {late: 3, from: 500, to: 960},
	} {
		if c.from == 0 {
			c.from, c.to = 500, 1000
		}
		j := New(Setup{Total: 2000})
		gpu := 0.0
		for step := range int64(1000) {
			each := 1.0
			if step >= c.from && step < c.to {
				each = c.late
			}
			if gpu += each; c.pause && step == 500 {
				gpu += 3600
			}
			if c.reported {
				j.Add(Throughput, step, gpu, 100/each)
			}
			j.Add(Train, step, gpu, drawn(step))
		}
		v, ok := ask(j, Slower)
		if ok != c.want || ok && (v.Saves == nil || *v.Saves <= 0 || v.Since < 400 || v.Since > 560) {
			t.Errorf("%s: %v, %+v", name, ok, v)
		}
	}
}

// TestSlowerSteps checks that a few steps that were slow, at the end of a short run, give no verdict.
func TestSlowerSteps(t *testing.T) {
	j := New(Setup{Total: 400})
	gpu := 0.0
	for step := range int64(90) {
		if gpu++; step >= 65 {
			gpu += 2
		}
		j.Add(Train, step, gpu, drawn(step))
		if v, ok := ask(j, Slower); ok {
			t.Fatalf("step %d: %+v", step, v)
		}
	}
}

// TestPlateauText checks that a plateau of an uneven metric does not promise an improvement by more than it can be.
func TestPlateauText(t *testing.T) {
	j := New(Setup{Total: 1000})
	for step := range int64(600) {
		loss := 0.05 + 0.5*math.Exp(-float64(step)/100)
		if step > 400 {
			loss = 1 + 1.3*math.Exp(-float64(step-400)/150) // another task
		}
		j.Add(Train, step, float64(step), loss)
	}
	if v, ok := ask(j, Plateau); !ok || !strings.Contains(v.Sentence, "may still improve by more than half") {
		t.Errorf("got %v, %+v", ok, v)
	}
}

// TestResumed checks that a run that resumes from a checkpoint is judged by its values after that.
func TestResumed(t *testing.T) {
	j := New(Setup{Total: 10000})
	for step := range int64(3000) {
		loss := drawn(step)
		if step > 2000 {
			loss = 9
		}
		j.Add(Train, step, float64(step), loss)
	}
	if _, ok := ask(j, Diverged); !ok {
		t.Fatal("the divergence is not found")
	}
	for step := int64(1900); step < 3000; step++ {
		j.Add(Train, step, float64(step+1100), drawn(step))
		if step%20 != 0 {
			continue
		}
		if v, ok := ask(j, Diverged); ok {
			t.Fatalf("step %d after the restart: %+v", step, v)
		}
	}
}

// TestBounded checks that a curve takes bounded memory, and that its means are right.
func TestBounded(t *testing.T) {
	var s series
	for step := range int64(1_000_000) {
		s.add(point{step, float64(step), float64(step)})
	}
	all := s.points()
	if len(all) > 2*maxRecent+maxBuckets || s.n != 1_000_000 {
		t.Errorf("%d points of %d", len(all), s.n)
	}
	for i, p := range all {
		if i > 0 && p.step <= all[i-1].step {
			t.Fatalf("point %d: step %d after %d", i, p.step, all[i-1].step)
		}
		if off := float64(p.step) - p.value; off < 0 || off > float64(s.per) {
			t.Fatalf("point %d: the mean of the values until step %d is %g", i, p.step, p.value)
		}
	}
	s.cut(600_000)
	if s.n < 500_000 || s.newest().step >= 600_000 || s.newest().step < 580_000 {
		t.Errorf("after a cut at step 600000: %d points, the last at step %d", s.n, s.newest().step)
	}
}
