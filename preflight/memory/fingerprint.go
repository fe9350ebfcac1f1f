package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

// Limits on how much Fingerprint reads. For files beyond the limits, it uses their sizes and times instead of
// their contents.
const (
	ReadFile  = 1 << 20  // bytes of one file
	ReadTotal = 32 << 20 // bytes of all files
)

// allotted are patterns of variables that do not count in a fingerprint, in addition to incidental
// ones. They say what a batch system or a login has given to the job this time.
var allotted = []string{
	"SLURM_*", "SLURMD_*", "SBATCH_*", "PBS_*", "OAR_*", "OARDO_*", "FLUX_*", "LSB_*", "PMI_*", "PMIX_*",
	"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "TMPDIR", "HOSTNAME",
}

// Fingerprint returns a hash that is the same for runs of the same job with the same program, code, image, inputs,
// environment and standard input. The hosts do not matter, nor do variables that a login or a batch system sets. The
// code is the content of the files that the command names, and of the Python modules at which Key looks. input
// identifies the standard input. ok is false if not all of this is known.
func Fingerprint(spec job.Spec, env []string, facts []job.Facts, input string) (key string, ok bool) {
	for _, m := range mounts(spec) { // the code would be searched in other places
		if m.Source != m.Target {
			return "", false
		}
	}
	if len(facts) == 0 || slices.ContainsFunc(facts, func(f job.Facts) bool { return f.Program.SHA256 == "" }) {
		return "", false
	}
	code := sources(spec, env, facts)
	if code == nil {
		return "", false
	}
	code.read()
	if spec.Resume {
		code.entries(spec.CheckpointDir)
	}
	data, err := exact.Marshal(struct {
		Spec        job.Spec
		Environment []string
		Input       string
		Hosts       []string
		Code        prints
	}{essence(spec), lasting(env), input, alike(facts), code})
	if err != nil {
		return "", false
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), true
}

// essence returns the part of the spec on which the result of a job depends. A new field of Spec
// counts until essence clears it.
func essence(spec job.Spec) job.Spec {
	spec.Name, spec.Retries, spec.Policy, spec.Requeue, spec.Rules, spec.RefuseKnown, spec.Progress = "", 0, nil, 0, "", false, ""
	spec.Preflight, spec.Trial, spec.Output, spec.TTY, spec.ExitCode, spec.Secret = "", job.Trial{}, "", "", "", nil
	spec.Faulthandler, spec.Watch, spec.StragglerWindow, spec.MTBF = false, "", 0, 0
	spec.Grace, spec.Timeout, spec.InitTimeout, spec.HangTimeout, spec.TimeReserve = 0, 0, 0, 0, 0
	spec.OnSignal, spec.BeforeStop, spec.BeforeStopWait = "", "", 0
	spec.EarlyStop, spec.Curve, spec.RetryOnDiverge = "", job.Curve{}, job.Diverge{}
	spec.Loopback, spec.Hosts, spec.Hostfile, spec.Inventory, spec.Network, spec.Launcher = 0, "", "", "", "", ""
	spec.HostTimeout, spec.OrphanGrace, spec.Locality, spec.Patience = 0, 0, "", ""
	return spec
}

// lasting returns the variables of env that count in a fingerprint, sorted.
func lasting(env []string) []string {
	return slices.DeleteFunc(counted(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(allotted, func(pattern string) bool {
			match, _ := path.Match(pattern, name) // the patterns are well formed
			return match
		})
	})
}

// alike returns what the hosts have of a job, without repetitions. It does not matter which hosts
// these are, or how many.
func alike(facts []job.Facts) []string {
	var all []string
	for _, f := range facts {
		var image, script string
		if f.Image != nil {
			image = f.Image.Digest
		}
		if f.Script != nil {
			script = f.Script.SHA256
		}
		inputs := make(prints)
		for _, in := range f.Inputs {
			m := mark{Bytes: in.Bytes, Time: in.Changed.UTC()}
			if in.Dir {
				m.Bytes = 0 // the size of a directory depends only on the file system
			}
			inputs[in.Path] = m
		}
		one, err := json.Marshal([]any{f.Program.SHA256, script, image, inputs, f.Versions})
		if err == nil { // err is always nil
			all = append(all, string(one))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// read replaces the times of files by hashes of their contents.
func (p prints) read() {
	left := int64(ReadTotal)
	for _, name := range slices.Sorted(maps.Keys(p)) {
		m := p[name]
		if m.Bytes > min(ReadFile, left) {
			continue
		}
		data, err := safefile.ReadFile(name, ReadFile)
		if err != nil {
			continue // a directory, or a file that cannot be read, counts by its time
		}
		left -= int64(len(data))
		sum := sha256.Sum256(data)
		p[name] = mark{Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	}
}

// entries adds the marks of the files that are directly in a directory.
func (p prints) entries(dir string) {
	all, _ := os.ReadDir(dir) // a directory that cannot be read has no entries for the job either
	for _, e := range all {
		if info, err := e.Info(); err == nil {
			p[filepath.Join(dir, e.Name())] = mark{Bytes: info.Size(), Time: info.ModTime()}
		}
	}
}
