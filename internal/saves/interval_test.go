package saves

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// TestStall simulates steps with noise. A checkpoint stops the training for a known time.
func TestStall(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		step, stall, write time.Duration
		noise              float64 // the noise of a step
		each               int64   // number of steps that one line reports
	}{
		"none":             {time.Second, 0, 5 * time.Second, 0.05, 1},
		"two seconds":      {time.Second, 2 * time.Second, 2 * time.Second, 0.05, 1},
		"asynchronous":     {time.Second, 500 * time.Millisecond, 20 * time.Second, 0.02, 1},
		"each 10th step":   {100 * time.Millisecond, 3 * time.Second, 3 * time.Second, 0.05, 10},
		"long steps":       {30 * time.Second, 10 * time.Second, 8 * time.Second, 0.01, 1},
		"steps of 30 ms":   {30 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond, 0.1, 1},
		"half of one step": {time.Second, 500 * time.Millisecond, 400 * time.Millisecond, 0.02, 1},
	} {
		var steps []Step
		now, at := start, start
		for i := range 100 {
			now = now.Add(time.Duration(float64(c.step) * float64(c.each) * (1 + c.noise*random.NormFloat64())))
			if i == 40 {
				at = now.Add(c.step / 10)
				now = now.Add(c.stall)
			}
			steps = append(steps, Step{now, int64(i+1) * c.each})
		}
		got, ok := Stall(steps, at, at.Add(c.write))
		if limit := c.step*time.Duration(c.each)/5 + c.stall/10; !ok || (got-c.stall).Abs() > limit {
			t.Errorf("%s: %v (%v), want %v within %v", name, got, ok, c.stall, limit)
		}
		for _, unknown := range []struct {
			steps        []Step
			begun, ended time.Time
		}{{nil, at, at}, {steps[90:], at, at.Add(c.write)}, {steps[:41], at, at.Add(c.write + time.Duration(20*c.each)*c.step + c.stall)}, {steps[40:43], at.Add(c.step), at.Add(2 * c.step)}} {
			if d, ok := Stall(unknown.steps, unknown.begun, unknown.ended); ok {
				t.Errorf("%s: %v, and it is not known", name, d)
			}
		}
	}
}

// TestBest compares Best with the smallest loss that a simulation finds. Failures come at random. With each
// failure, a job loses the work since its last checkpoint.
func TestBest(t *testing.T) {
	if d := Best(40*time.Second, 9720*time.Second); d < 14*time.Minute || d > 15*time.Minute {
		t.Errorf("a cost of 40 s and a failure every 2.7 h: %v, want 14 to 15 min", d)
	}
	for _, c := range []struct{ cost, between time.Duration }{
		{time.Second, time.Hour}, {40 * time.Second, 9720 * time.Second}, {5 * time.Minute, 2 * time.Hour}, {500 * time.Millisecond, 24 * time.Hour},
	} {
		// total returns the time that one second of work takes in a run: Daly's equation for failures at any
		// time. Best approximates its minimum.
		total := func(every time.Duration) float64 {
			m := c.between.Seconds()
			return m * (math.Exp((every+c.cost).Seconds()/m) - 1) / every.Seconds()
		}
		best := Best(c.cost, c.between)
		least := math.Inf(1)
		for every := best / 20; every < 20*best; every += best / 50 {
			least = min(least, total(every))
		}
		if total(best) > least*1.0005 {
			t.Errorf("%+v: at %v, %.5f of the work is needed, and %.5f at the best", c, best, total(best), least)
		}
		// This is simulated, with failures also while the job saves.
		random := rand.New(rand.NewPCG(3, 4))
		lost := func(every time.Duration) float64 {
			done, ran, next := 0.0, 0.0, random.ExpFloat64()*c.between.Seconds()
			for range 200_000 {
				piece := (every + c.cost).Seconds()
				if next < piece {
					ran += next
					next = random.ExpFloat64() * c.between.Seconds()
					continue
				}
				next -= piece
				ran += piece
				done += every.Seconds()
			}
			return ran / done
		}
		if at := lost(best); at > lost(best*3)*1.002 || at > lost(best/3)*1.002 {
			t.Errorf("%+v: %v is not better than three times or a third of it", c, best)
		}
	}
	if Best(0, time.Hour) != 0 || Best(time.Hour, 0) != 0 || Best(3*time.Hour, time.Hour) != time.Hour {
		t.Error("costs or failures that make no sense")
	}
}

func TestAdvise(t *testing.T) {
	d := func(d time.Duration) job.Duration { return job.Duration(d) }
	rate := job.SaveInterval{Failures: d(4 * time.Hour), Source: job.FailuresOfJob, Count: 5}
	stall := 7 * time.Second
	a, ok := Advise(58*time.Minute, 20*time.Second, &stall, rate)
	if want := "you save every 58 min, which costs 0.2 % of the time and loses 29 min per failure on average; 7.4 min would cost 1.6 % and lose 3.7 min (a failure every 4 h, in earlier runs of the job)"; !ok || Words(a) != want {
		t.Errorf("%+v (%v)\ngot  %s\nwant %s", a, ok, Words(a), want)
	}
	a, ok = Advise(8*time.Minute, 20*time.Second, &stall, rate)
	if want := "you save every 8 min, which costs 1.5 % of the time and loses 4 min per failure on average: that is near the best (a failure every 4 h, in earlier runs of the job)"; !ok || !Near(a) || Words(a) != want {
		t.Errorf("%+v (%v)\ngot  %s\nwant %s", a, ok, Words(a), want)
	}
	// Only the time for writing a checkpoint is known.
	a, ok = Advise(0, 40*time.Second, nil, job.SaveInterval{Failures: d(9720 * time.Second), Source: job.FailuresUsual})
	if want := "saving every 14 min would cost at most 4.8 % of the time and lose 7 min per failure on average (a failure every 2.7 h, as is usual for a cluster)"; !ok || !a.Assumed || Words(a) != want {
		t.Errorf("%+v (%v)\ngot  %s\nwant %s", a, ok, Words(a), want)
	}
	// A job whose checkpoints take longer to write than the best interval cannot save so often.
	stall = 20 * time.Millisecond
	if a, ok = Advise(time.Hour, 5*time.Minute, &stall, rate); !ok || a.Best != d(10*time.Minute) {
		t.Errorf("%+v (%v)", a, ok)
	}
	if _, ok = Advise(time.Hour, 0, nil, rate); ok {
		t.Error("advice without a cost")
	}
}

func TestRate(t *testing.T) {
	span := func(name string, hours int, failed bool, hosts ...string) Span {
		return Span{Job: name, Hosts: hosts, Ran: time.Duration(hours) * time.Hour, Failed: failed}
	}
	three := []Span{span("a", 10, true, "h1", "h2"), span("a", 10, true, "h1", "h2"), span("a", 4, true, "h1", "h2"), span("a", 6, false, "h1", "h2")}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprint("n", i)
	}
	large := []Span{span("a", 1000, true, many...), span("a", 1000, true, many...), span("a", 1000, true, many...)} // 342 years on one host
	for name, c := range map[string]struct {
		past  []Span
		job   string
		hosts []string
		want  job.SaveInterval
	}{
		"nothing is known":        {nil, "a", []string{"h1"}, job.SaveInterval{Failures: job.Duration(UsualBetween(1)), Source: job.FailuresUsual}},
		"of the job":              {three, "a", []string{"h1", "h2"}, job.SaveInterval{Failures: job.Duration(10 * time.Hour), Source: job.FailuresOfJob, Count: 3}},
		"of the job, on one host": {three, "a", []string{"h9"}, job.SaveInterval{Failures: job.Duration(20 * time.Hour), Source: job.FailuresOfJob, Count: 3}},
		"of the hosts":            {three, "b", []string{"h1"}, job.SaveInterval{Failures: job.Duration(10 * time.Hour), Source: job.FailuresOfHosts, Count: 3}},
		"of other hosts":          {three, "b", []string{"h9"}, job.SaveInterval{Failures: job.Duration(UsualBetween(1)), Source: job.FailuresUsual}},
		"of a large cluster":      {large, "a", many, job.SaveInterval{Failures: job.Duration(1000 * time.Hour), Source: job.FailuresOfJob, Count: 3}},
		"too few failures":        {three[1:], "a", []string{"h1", "h2"}, job.SaveInterval{Failures: job.Duration(UsualBetween(2)), Source: job.FailuresUsual}},
	} {
		if got := Rate(c.past, c.job, c.hosts); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if d := UsualBetween(1).Hours() / 24; math.Abs(d-153.8) > 0.1 {
		t.Errorf("a host fails each %v days", d)
	}
	stall := time.Second
	past := []Span{{Job: "b", Write: 1}, {Job: "a"}, {Job: "a", Write: 2 * time.Second, Stall: &stall}, {Job: "a", Write: 9}}
	if write, s, ok := Costs(past, "a"); !ok || write != 2*time.Second || *s != stall {
		t.Errorf("%v %v %v", write, s, ok)
	}
	if _, _, ok := Costs(past, "c"); ok {
		t.Error("costs of a job that never ran")
	}
}
