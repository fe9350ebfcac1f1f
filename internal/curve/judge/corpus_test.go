//go:build !race

package judge

import (
	"compress/gzip"
	"encoding/csv"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// training is a run of the corpus. See testdata/README.md.
type training struct {
	name, kind, set, model, schedule string

	steps, settled int64
	seconds        float64
	rows           []row
	bare           bool // the Judge gets no validations
	known          *hindsight
}

// row has the values that a run reported at a step. A value that it did not report is missing.
type row struct {
	step             int64
	loss, validation float64
	rate, norm       float64
	hasValidation    bool
}

var readCorpus = sync.OnceValues(func() ([]training, error) {
	var all []training
	table, err := os.Open(filepath.Join("testdata", "runs.csv"))
	if err != nil {
		return nil, err
	}
	defer table.Close()
	lines, err := csv.NewReader(table).ReadAll()
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for _, l := range lines[1:] {
		at[l[0]] = len(all)
		all = append(all, training{name: l[0], kind: l[1], set: l[2], model: l[3], schedule: l[4], steps: int64(parse(l[5])), settled: int64(parse(l[6])), seconds: parse(l[7])})
	}
	file, err := os.Open(filepath.Join("testdata", "curves.csv.gz"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	lines, err = csv.NewReader(plain).ReadAll()
	if err != nil {
		return nil, err
	}
	var now *training
	for _, l := range lines[1:] {
		if l[0] != "" {
			now = &all[at[l[0]]]
		}
		now.rows = append(now.rows, row{step: int64(parse(l[1])), loss: parse(l[2]), validation: parse(l[3]),
			rate: parse(l[4]), norm: parse(l[5]), hasValidation: l[3] != ""})
	}
	return all, nil
})

func parse(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64) // v is 0 if the value is missing
	return v
}

// corpus returns the runs of each part in docs/curves.md: work, held, other and fresh.
func corpus(t testing.TB) (parts [4][]training) {
	t.Helper()
	all, err := readCorpus()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		h := fnv.New32a()
		h.Write([]byte(r.name))
		part := int(h.Sum32() % 2)
		for i, prefix := range []string{"other-", "fresh-"} {
			if kind, ok := strings.CutPrefix(r.kind, prefix); ok {
				r.kind, part = kind, 2+i
			}
		}
		parts[part] = append(parts[part], r)
	}
	return parts
}

// gpu returns the GPU time at a step. The GPU time of the whole run is distributed evenly over its steps.
func (r *training) gpu(step int64) float64 { return r.seconds * float64(step) / float64(r.steps) }

// play adds the rows of a run to a Judge. It calls at after each validation, until at returns false.
func (r *training) play(j *Judge, at func(step int64) bool) {
	for _, x := range r.rows {
		gpu := r.gpu(x.step)
		j.Add(Rate, x.step, gpu, x.rate)
		j.Add(GradNorm, x.step, gpu, x.norm)
		j.Add(Train, x.step, gpu, x.loss)
		if x.hasValidation {
			if !r.bare {
				j.Add(Validation, x.step, gpu, x.validation)
			}
			if !at(x.step) {
				return
			}
		}
	}
}

// first returns, for each kind, the first verdict of a whole run and the first that is sure.
func (r *training) first(s Setup) (advice, sure map[Kind]Verdict) {
	return r.firstOf(s, (*Judge).Verdicts)
}

// firstOf is like first for the verdicts that ask returns.
func (r *training) firstOf(s Setup, ask func(*Judge) []Verdict) (advice, sure map[Kind]Verdict) {
	advice, sure = map[Kind]Verdict{}, map[Kind]Verdict{}
	j := New(s)
	r.play(j, func(int64) bool {
		for _, v := range ask(j) {
			if _, ok := advice[v.Kind]; !ok {
				advice[v.Kind] = v
			}
			if _, ok := sure[v.Kind]; !ok && v.Sure {
				sure[v.Kind] = v
			}
		}
		return true
	})
	return advice, sure
}

// hindsight has figures of a complete run.
type hindsight struct {
	checks   []point // the finite validations
	best     float64 // the lowest validation loss
	broken   bool    // the loss was not finite five times in a row
	diverged bool
	flat     bool
}

func (r *training) hindsight() hindsight {
	if r.known == nil {
		h := r.look()
		r.known = &h
	}
	return *r.known
}

func (r *training) look() (h hindsight) {
	var losses []float64
	bad := 0
	for _, x := range r.rows {
		if x.hasValidation && !math.IsNaN(x.validation) && !math.IsInf(x.validation, 0) {
			h.checks = append(h.checks, point{x.step, r.gpu(x.step), x.validation})
		}
		if math.IsNaN(x.loss) || math.IsInf(x.loss, 0) {
			bad++
			continue
		}
		h.broken = h.broken || bad >= 5
		bad = 0
		losses = append(losses, x.loss)
	}
	h.best = math.Inf(1)
	if len(h.checks) > 0 {
		h.best = lowest(h.checks).value
	}
	h.broken = h.broken || bad >= 5
	h.diverged = bad >= 5
	if n := len(losses); n > 20 {
		start, end := quantile(slices.Clone(losses[:5]), 0.5), quantile(slices.Clone(losses[n-n/10:]), 0.5)
		best := math.Inf(1)
		for i := 20; i <= n; i++ {
			best = min(best, quantile(slices.Clone(losses[i-20:i]), 0.5))
		}
		h.diverged = h.diverged || end > best+0.5*max(start-best, 0.2*math.Abs(best)) && end-best > 0.1*math.Abs(best)
	}
	h.flat = strings.Contains(r.kind, "stuck-dead") || strings.Contains(r.kind, "stuck-rate") || !h.broken && lowestMedian(losses) > 0.95*r.rows[0].loss
	return h
}

// lowestMedian returns the lowest median of five losses in a row.
func lowestMedian(losses []float64) float64 {
	best := math.Inf(1)
	for i := 5; i <= len(losses); i++ {
		best = min(best, quantile(slices.Clone(losses[i-5:i]), 0.5))
	}
	return best
}

// regret returns by how much the best validation of the whole run is better than the best until a step, as a
// share of the latter.
func (h hindsight) regret(step int64) float64 {
	until := math.Inf(1)
	for _, p := range h.checks {
		if p.step <= step {
			until = min(until, p.value)
		}
	}
	if math.IsInf(until, 1) {
		return 0
	}
	return (until - h.best) / math.Abs(until)
}

// distance returns by how much the median of the last five validations is better than the best until a step,
// as a share of the latter.
func (h hindsight) distance(step int64) float64 {
	until := math.Inf(1)
	for _, p := range h.checks {
		if p.step <= step {
			until = min(until, p.value)
		}
	}
	if math.IsInf(until, 1) {
		return 0
	}
	return max(0, (until-median(h.checks[max(0, len(h.checks)-5):]))/math.Abs(until))
}
