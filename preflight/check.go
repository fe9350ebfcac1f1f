package preflight

import (
	"maps"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Check is one question of the preflight. Programs may rely on its Code, which job.Finding.Check has.
type Check struct {
	Code string
	// Asks is the question, as a sentence for the documentation.
	Asks string
	// DependsOn has the Codes of other checks. If one of these checks finds an error on a host, this check
	// skips the host.
	DependsOn []string
	// Problems has all problems that the check can find.
	Problems []Problem
	// Judge returns the problems of the hosts whose facts it gets. These are the hosts on which no check in
	// DependsOn has found an error. Judge has no side effects. It is nil if the check is answered not by
	// facts, but by the trial, the history of runs or measurements.
	Judge func(job.Spec, []job.Facts) []Hit
}

// Problem is one problem that a Check can find.
type Problem struct {
	// Signature is unique among all checks. The job.Cause of a finding has the same Signature.
	Signature string
	Severity  job.Severity
	// Category is the category of the job.Cause. It is empty for warnings.
	Category job.Category
	// Text and Hint are shown to the user. Each {name} in them is replaced by Hit.Values[name],
	// and {hosts} by the hosts that have the problem.
	Text, Hint string
}

// Hit is a Problem that was found.
type Hit struct {
	Signature string   // Signature of the Problem
	Hosts     []string // the hosts that have the problem, in the order of the facts
	Path      string   // the path that has the problem; empty if the problem is not about a path
	Values    map[string]string
	// Evidence has lines that show the problem in more detail than Text.
	Evidence []job.Line
}

// says reports whether h and o are the same problem, perhaps on different hosts.
func (h Hit) says(o Hit) bool {
	return h.Signature == o.Signature && h.Path == o.Path && maps.Equal(h.Values, o.Values)
}

// Codes of the checks that the history of runs or the trial answers.
const (
	CodeKnown      = "known-failure"
	CodeTrial      = "trial"
	CodeTrialRanks = "trial-ranks"
	CodeTrialFiles = "trial-files"
)

var checks = []Check{
	imageCheck,
	imageSameCheck,
	workdirCheck,
	programCheck,
	librariesCheck,
	programSameCheck,
	cudaCheck,
	versionsCheck,
	mpiCheck,
	mpiSameCheck,
	scriptCheck,
	syntaxCheck,
	scriptSameCheck,
	inputsCheck,
	clockCheck,
	reachCheck,
	checkpointDirCheck,
	checkpointSharedCheck,
	checkpointRoomCheck,
	healthCheck,
	knownCheck,
	trialCheck,
	trialRanksCheck,
	trialFilesCheck,
}

// Checks returns every Check. Each Check comes after the Checks on which it depends.
func Checks() []Check { return slices.Clone(checks) }

// lookup returns the Check with a code. There must be one in Checks.
func lookup(code string) Check {
	return checks[slices.IndexFunc(checks, func(c Check) bool { return c.Code == code })]
}

// problem returns the Problem with a signature. There must be one in c.Problems.
func (c Check) problem(signature string) Problem {
	return c.Problems[slices.IndexFunc(c.Problems, func(p Problem) bool { return p.Signature == signature })]
}

// finding makes a finding from a Hit. hosts is the number of hosts of the gang. If a Hit has no Hosts, it is
// not about particular hosts.
func (c Check) finding(h Hit, hosts int) job.Finding {
	p := c.problem(h.Signature)
	pairs := []string{"{hosts}", names(h.Hosts)}
	for name, value := range h.Values {
		pairs = append(pairs, "{"+name+"}", value)
	}
	fill := strings.NewReplacer(pairs...)
	f := job.Finding{Check: c.Code, Severity: p.Severity, Text: fill.Replace(p.Text), Hint: fill.Replace(p.Hint)}
	if len(h.Hosts) == 1 {
		f.Host = h.Hosts[0]
	} else if len(h.Hosts) > 1 && !strings.Contains(p.Text, "{hosts}") {
		f.Text += where(h.Hosts, hosts)
	}
	if p.Category != "" {
		f.Cause = &job.Cause{
			Category: p.Category, Signature: p.Signature, Rank: -1, Host: f.Host, Confidence: 1,
			Text: f.Text, Hint: f.Hint, Retry: p.Category.Action(), Artefact: h.Path, Evidence: h.Evidence,
		}
	}
	return f
}

// each makes a Judge from a function that looks at one host at a time.
func each(judge func(job.Spec, job.Facts) []Hit) func(job.Spec, []job.Facts) []Hit {
	return func(s job.Spec, facts []job.Facts) []Hit {
		var hits []Hit
		for _, f := range facts {
			for _, h := range judge(s, f) {
				h.Hosts = []string{f.Host}
				hits = append(hits, h)
			}
		}
		return hits
	}
}

// pathHits returns the Hit for a problem with a path, if there is one. Its signature is prefix-KIND for the
// kinds of errors that the check distinguishes, and prefix-io for all other kinds.
func pathHits(prefix string, f job.PathFact, kinds ...job.ErrorKind) []Hit {
	if f.Kind == job.ErrorNone && f.Error == "" {
		return nil
	}
	if f.HostPath != "" {
		return []Hit{{Signature: prefix + "-unmounted", Path: f.Path, Values: about(f.HostPath, "mount", quote(f.Mount))}}
	}
	kind := f.Kind
	if !slices.Contains(kinds, kind) {
		kind = job.ErrorIO
	}
	return []Hit{{Signature: prefix + "-" + string(kind), Path: f.Path, Values: about(f.Path, "error", f.Error)}}
}

// about returns the values of a Hit about a path. pairs has further names and values.
func about(path string, pairs ...string) map[string]string {
	values := map[string]string{"path": quote(path)}
	for i := 0; i+1 < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return values
}
