package judge

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestHealthyRises checks that no Diverged is sure in synthetic runs that are in order although their loss
// rises. Each curve is of a thousand steps; s is the step, and e a random number with standard deviation 1.
func TestHealthyRises(t *testing.T) {
	exp, sum, held := math.Exp, 0.0, 0.0
	for _, c := range []struct {
		name       string
		loss       func(s, e float64) float64
		validation func(s float64) float64
		higher     bool
		setup      Setup
	}{
		{name: "the validation loss improves", loss: func(s, e float64) float64 {
			if s > 400 {
				return 1.8 - 0.9*exp(-(s-400)/50) + 0.03*e
			}
			return 0.4 + 1.5*exp(-s/100) + 0.02*e
		}, validation: func(s float64) float64 { return 0.35 + exp(-s/200) }},
		{name: "the reward of validation improves", loss: func(s, e float64) float64 { return 0.3 + s/100 + 0.3*e },
			validation: func(s float64) float64 { return s / 5 }, higher: true},
		{name: "PPO: the loss of the values grows with the rewards", loss: func(s, e float64) float64 { return 0.005*s + math.Abs(0.3*e) }},
		{name: "DQN: the loss grows with the values", loss: func(s, e float64) float64 { return 0.01 + 0.0009*s*(1+0.1*e) }},
		{name: "reinforcement learning: the loss falls, and then grows a hundredfold", setup: Setup{Indirect: true},
			loss: func(s, e float64) float64 { return 0.5*exp(-s/20) + 0.01 + exp(s/150)/10 + 0.001*e }},
		{name: "reinforcement learning without a name: the loss falls, and then grows a hundredfold",
			loss: func(s, e float64) float64 { return 0.5*exp(-s/20) + 0.01 + 0.06*max(0, s-60) + 0.001*e }},
		{name: "another loss, which is twenty times as high", loss: func(s, e float64) float64 {
			if s > 600 {
				return 50 + 0.1*e
			}
			return 0.5 + 2*exp(-s/100) + 0.02*e
		}},
		{name: "the validation varies about its first value, and a harder task begins", loss: func(s, e float64) float64 {
			if s > 500 {
				return 2.8 + 0.02*e
			}
			return 0.5 + 2*exp(-s/100) + 0.02*e
		}, validation: func(s float64) float64 { return 0.5 + 0.01*math.Sin(s) }},
		{name: "GAN: the loss of the generator", loss: func(s, e float64) float64 { return 0.3 + 2.6*(1-exp(-s/150)) + 0.2*e }},
		{name: "the loss of the entropy", loss: func(s, e float64) float64 { return -0.3 - 1.5*exp(-s/250) + 0.03*e }},
		{name: "a sum over the run", loss: func(s, e float64) float64 { sum += 0.3 + 2*exp(-s/170) + 0.02*e; return sum }},
		{name: "a sum over each third", loss: func(s, e float64) float64 {
			if math.Mod(s, 333) == 1 {
				held = 0
			}
			held += 0.3 + 2*exp(-s/170) + 0.02*e
			return held
		}},
		{name: "a hump in the warm-up", loss: func(s, e float64) float64 {
			if s < 500 {
				return 0.5 + 0.5*math.Sin(math.Pi*s/500) + 0.01*e
			}
			return 0.5*exp(-(s-500)/1500) + 0.01*e
		}},
		{name: "VAE: the weight of the divergence rises", loss: func(s, e float64) float64 { return 0.2 + 0.8*exp(-s/60) + 0.7*min(1, s/800) + 0.01*e }},
		{name: "a task that becomes harder five times", loss: func(s, e float64) float64 {
			return 0.4 + 0.4*math.Floor(s/200) + 0.5*exp(-math.Mod(s, 200)/40) + 0.02*e
		}},
		{name: "fine-tuning on another task", loss: func(s, e float64) float64 { return 0.9 - 0.6*exp(-s/40) - 0.0007*max(0, s-200) + 0.01*e }},
		{name: "two tasks that alternate", loss: func(s, e float64) float64 {
			if math.Mod(s, 400) > 200 {
				return 3 + 0.05*e
			}
			return 0.6 - 0.0003*s + 0.01*e
		}},
		{name: "longer sequences from the middle on", loss: func(s, e float64) float64 {
			if s > 600 {
				return 2.2 + 0.02*e
			}
			return 0.5 + 2*exp(-s/100) + 0.02*e
		}},
	} {
		noise := rand.New(rand.NewPCG(1, 2))
		setup := c.setup
		setup.Total, setup.Higher = 1000, c.higher
		j := New(setup)
		sum, held = 0, 0
		for step := int64(1); step <= 1000; step++ {
			j.Add(Train, step, float64(step), c.loss(float64(step), noise.NormFloat64()))
			if c.validation != nil && step%20 == 0 {
				j.Add(Validation, step, float64(step), c.validation(float64(step)))
			}
			if step%2 != 0 {
				continue
			}
			if v, ok := ask(j, Diverged); ok && v.Sure {
				t.Errorf("%s: step %d: %+v", c.name, step, v)
				break
			}
		}
	}
}
