package curvewatch

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/job"
)

// feed adds the values of some steps. Each step takes a second of one GPU.
func feed(t *track, source, name string, from, to int64, value func(step int64) float64) {
	for step := from; step < to; step++ {
		t.add(source, name, at(step, value(step)))
	}
}

func at(step int64, value float64) point {
	return point{step: step, at: time.Unix(1e9+step, 0), gpu: float64(step), value: value}
}

func falls(step int64) float64 { return 1 + 1/float64(step+1) }
func nan(int64) float64        { return math.NaN() }

// said returns the kinds of the new verdicts as a short text.
func (t *track) said() (text string) {
	for _, v := range t.verdicts() {
		text += fmt.Sprintf("%s %s since %d; ", v.Metric, v.Kind, v.Since)
	}
	return text
}

func TestVerdictsAreToldOnce(t *testing.T) {
	r := newTrack("", nil, judge.Setup{Total: 1000})
	feed(r, "a", "loss", 0, 100, falls)
	if said := r.said(); said != "" {
		t.Errorf("of a healthy run: %s", said)
	}
	feed(r, "a", "loss", 100, 110, nan)
	got := r.verdicts()
	if len(got) != 1 {
		t.Fatalf("got %+v", got)
	}
	v := got[0]
	if v.Kind != "not-finite" || v.Metric != "loss" || v.Source != "a" || v.Since != 100 || v.Step != 109 || v.Value != nil || !v.Sure || !v.SinceTime.Equal(time.Unix(1e9+100, 0)) ||
		v.Saves == nil || math.Abs(*v.Saves-891.0/3600) > 1e-9 {
		t.Errorf("got %+v", v)
	}
	feed(r, "a", "loss", 110, 120, nan)
	if said := r.said(); said != "" {
		t.Errorf("told again: %s", said)
	}
}

// TestNextAttempt: values after the checkpoint are removed, and values before it remain. There is no verdict on
// an attempt before it has reported anything.
func TestNextAttempt(t *testing.T) {
	r := newTrack("", nil, judge.Setup{Total: 1000})
	feed(r, "a", "loss", 0, 100, falls)
	feed(r, "a", "loss", 100, 110, nan)
	feed(r, "a", "val_loss", 0, 90, falls)
	if said := r.said(); said != "loss not-finite since 100; " {
		t.Errorf("said %s", said)
	}
	r.begin(60)
	if said := r.said(); said != "" {
		t.Errorf("before anything is reported: %s", said)
	}
	feed(r, "b", "loss", 61, 100, falls)
	if said := r.said(); said != "" || len(r.series) != 2 || len(r.series[0].points) != 100 || r.series[0].source != "b" || len(r.series[1].points) != 61 {
		t.Errorf("of a healthy attempt: %s, %d series", said, len(r.series))
	}
	feed(r, "b", "loss", 100, 110, nan)
	if said := r.said(); said != "loss not-finite since 100; " {
		t.Errorf("when it comes again: %s", said)
	}
	r.begin(100)
	feed(r, "c", "loss", 101, 110, nan)
	if said := r.said(); said != "loss not-finite since 101; " {
		t.Errorf("of an attempt with NaN from its start: %s", said)
	}
	r.begin(0)
	if len(r.series) != 0 {
		t.Error("an attempt that starts from the beginning has curves")
	}
	if _, ok := r.judged(); ok {
		t.Error("it was judged by a curve")
	}
	r.begin(-1)
}

// TestChange checks that the curve is judged by a better metric as soon as the job reports one.
func TestChange(t *testing.T) {
	target := 0.4
	r := newTrack("", nil, judge.Setup{Target: &target})
	feed(r, "a", "loss", 0, 20, func(int64) float64 { return 1 })
	r.said()
	feed(r, "b", "val_loss", 0, 10, func(int64) float64 { return 0.3 })
	if said := r.said(); said != "val_loss reached since 0; " {
		t.Errorf("said %s", said)
	}
	higher := true
	r = newTrack("zeal", &higher, judge.Setup{Target: &target})
	feed(r, "a", "loss", 0, 20, falls)
	feed(r, "a", "zeal", 0, 20, func(step int64) float64 { return float64(step) / 20 })
	if said := r.said(); said != "zeal reached since 8; " {
		t.Errorf("of a metric that was named: %s", said)
	}
}

// TestRewards: if there is a reward, an exploding loss is no sure divergence. If there is no loss, the run is
// judged by an accuracy of training data.
func TestRewards(t *testing.T) {
	explodes := func(step int64) float64 { return map[bool]float64{false: falls(step), true: 1e6}[step > 300] }
	for _, other := range []string{"", "episode_reward", "trainer/actor_loss", "loss_D"} {
		r := newTrack("", nil, judge.Setup{Total: 1000})
		feed(r, "a", "loss", 0, 900, explodes)
		feed(r, "a", other, 0, 900, falls)
		got := r.verdicts()
		if len(got) != 1 || got[0].Kind != "diverged" || got[0].Sure != (other == "") {
			t.Errorf("beside %q: %+v", other, got)
		}
	}
	target := 0.5
	r := newTrack("", nil, judge.Setup{Target: &target})
	feed(r, "a", "accuracy", 0, 20, func(step int64) float64 { return float64(step) / 20 })
	if said := r.said(); said != "accuracy reached since 10; " {
		t.Errorf("of an accuracy: %s", said)
	}
}

// TestSlowerForLong: a pause of a fast job makes it appear slower at some looks. A fall that lasts only some
// seconds is not reported.
func TestSlowerForLong(t *testing.T) {
	for _, c := range []struct {
		each time.Duration // time of a step at first
		want bool
	}{{10 * time.Millisecond, false}, {200 * time.Millisecond, true}} {
		r := newTrack("", nil, judge.Setup{Total: 1000})
		now := time.Unix(1e9, 0)
		for step := range int64(400) {
			if now = now.Add(c.each); step >= 200 {
				now = now.Add(2 * c.each)
			}
			r.add("a", "loss", point{step: step, at: now, gpu: now.Sub(time.Unix(1e9, 0)).Seconds(), value: falls(step)})
		}
		if said := r.said(); strings.Contains(said, "loss slower since 199; ") != c.want {
			t.Errorf("steps of %s: %q", c.each, said)
		}
	}
}

func TestBounded(t *testing.T) {
	r := newTrack("", nil, judge.Setup{})
	feed(r, "a", "loss", 0, 20*maxPoints, falls)
	for i := range 2 * maxSeries {
		r.add(fmt.Sprint(i), "val_loss", at(1, 1))
	}
	r.add("a", "what nobody knows", at(1, 1))
	if n := len(r.series[0].points); n > maxPoints || n < maxPoints/4 || r.series[0].points[0].step != 0 || r.series[0].points[n-1].step != 20*maxPoints-1 {
		t.Errorf("%d points, from %d to %d", n, r.series[0].points[0].step, r.series[0].points[n-1].step)
	}
	if len(r.series) != maxSeries {
		t.Errorf("%d series", len(r.series))
	}
	r.total(5)
	r.total(7)
	if r.total(5); r.setup.Total != 7 { // an epoch has fewer steps
		t.Errorf("the run has %d steps", r.setup.Total)
	}
	r = newTrack("", nil, judge.Setup{Total: 5})
	if r.total(7); r.setup.Total != 5 {
		t.Errorf("the user has said 5 steps, but the run has %d", r.setup.Total)
	}
}

func TestPointsOfProgress(t *testing.T) {
	p := job.Progress{Step: 3, Count: 13, LossIs: job.LossNaN, Metrics: map[string]float64{"lr": 0.1}}
	got := pointsOf(p)
	if len(got) != 2 || got[0].Series != "loss" || got[0].Step != 13 || !math.IsNaN(got[0].Value) || got[1].Series != "lr" || got[1].Value != 0.1 {
		t.Errorf("got %+v", got)
	}
	if n := totalOf(job.Progress{Step: 3, Total: 10}); n != 10 {
		t.Errorf("the total is %d", n)
	}
	if n := totalOf(job.Progress{Step: 3, Count: 13, Total: 10, Restarts: true}); n != 0 {
		t.Errorf("the total of an epoch is that of the run: %d", n)
	}
}

// TestEarlier: there is a verdict on a run that is worse than earlier runs at the same step, if these were
// judged by the same metric.
func TestEarlier(t *testing.T) {
	good := newTrack("", nil, judge.Setup{Total: 100})
	feed(good, "a", "val_loss", 0, 100, func(step int64) float64 { return 1 / float64(step+1) })
	good.said()
	c, ok := good.judged()
	if !ok || c.Metric != "val_loss" || len(c.Points) != 100 {
		t.Fatalf("judged by %s, %d points", c.Metric, len(c.Points))
	}
	for metric, want := range map[string]bool{"val_loss": true, "loss": false} {
		c.Metric = metric
		r := newTrack("", nil, judge.Setup{Total: 100})
		r.earlier = []Curve{c, c, c}
		feed(r, "a", "val_loss", 0, 50, func(step int64) float64 { return 2 - float64(step)/100 })
		if said := r.said(); strings.Contains(said, "below-peers") != want {
			t.Errorf("beside %s: %s", metric, said)
		}
	}
	feed(good, "a", "val_loss", 100, 3000, func(int64) float64 { return 1 })
	if c, _ = good.judged(); len(c.Points) > maxKept+1 || c.Points[len(c.Points)-1].Step != 2999 {
		t.Errorf("%d points are kept", len(c.Points))
	}
}
