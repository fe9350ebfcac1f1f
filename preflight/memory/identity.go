package memory

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
)

// Key returns a hash of everything that is known to influence the result of a trial. env is the
// environment of the trial's ranks. ok is false if the trial must not be remembered.
func Key(spec job.Spec, env []string, facts []job.Facts) (key string, ok bool) {
	return identity(spec, env, facts, sources(spec, env, facts))
}

// identity returns a hash of everything that is known to influence a trial's result: the programs
// and scripts of the hosts, the command, the environment env of the ranks, the inputs and the
// sources. Only the hash has the values of variables, some of which may be secret. If a program is
// not known or sources is nil, ok is false, and the trial is not remembered.
func identity(spec job.Spec, env []string, facts []job.Facts, sources prints) (key string, ok bool) {
	// These fields do not change what one rank does. A new field of Spec counts until it is cleared
	// here.
	spec.Name, spec.Ranks, spec.Retries, spec.Policy, spec.Resume = "", 0, 0, nil, false
	spec.Grace, spec.Timeout, spec.Output, spec.Stdin, spec.ExitCode, spec.Preflight = 0, 0, "", "", "", ""
	spec.InitTimeout, spec.HangTimeout, spec.StragglerWindow, spec.MTBF, spec.RefuseKnown = 0, 0, 0, 0, false
	spec.EarlyStop, spec.Curve, spec.RetryOnDiverge, spec.BeforeStop, spec.BeforeStopWait = "", job.Curve{}, job.Diverge{}, "", 0
	type host struct {
		Name, Program, Script string
		Image                 string // its digest
		Inputs                map[string]int64
		Versions              map[string]string
		OpenMPI               *job.OpenMPIFact
	}
	for _, m := range mounts(spec) { // sources would be searched in other places
		if m.Source != m.Target {
			return "", false
		}
	}
	var hosts []host
	for _, f := range facts {
		h := host{Name: f.Host, Program: f.Program.SHA256, Inputs: make(map[string]int64), Versions: make(map[string]string), OpenMPI: f.OpenMPI}
		if h.Program == "" {
			return "", false
		}
		if f.Image != nil {
			h.Image = f.Image.Digest
		}
		if f.Script != nil {
			h.Script = f.Script.SHA256
		}
		for _, in := range f.Inputs {
			h.Inputs[in.Path] = in.Bytes
		}
		for _, v := range f.Versions {
			h.Versions[string(v.Kind)+" "+v.Name] = v.Version
		}
		hosts = append(hosts, h)
	}
	data, err := exact.Marshal(struct {
		Spec        job.Spec
		Environment []string
		Hosts       []host
		Sources     prints
	}{spec, counted(env), hosts, sources})
	if err != nil || sources == nil {
		return "", false
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), true
}

// mounts returns the mounts of a job's containers, or nil if the job has no containers.
func mounts(spec job.Spec) []job.Mount {
	if box := spec.Box(); box != nil {
		return box.Mounts
	}
	return nil
}
