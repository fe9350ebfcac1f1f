package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobfile"
	"github.com/gangrun/gangrun/internal/submit"
)

// Submission is a job for Slurm's queue.
type Submission struct {
	Spec  job.Spec
	Flags []string // flags of sbatch for the gang's job
}

// Plan returns what Submit would submit. It writes nothing.
func (s Submission) Plan() (submit.Plan, error) {
	r, err := s.request()
	return submit.Make(r), err
}

func (s Submission) request() (submit.Request, error) {
	if s.Spec.Hosts != "" || s.Spec.Hostfile != "" || s.Spec.Inventory != "" || s.Spec.Loopback > 0 {
		return submit.Request{}, failure.Usage("leave out hosts, hostfile, inventory and loopback: Slurm chooses the nodes", "a job for Slurm's queue must not name hosts")
	}
	dir, err := HomeDir()
	if err != nil {
		return submit.Request{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return submit.Request{}, err
	}
	return submit.Request{Spec: s.Spec, Gangrun: self, Flags: s.Flags, File: filepath.Join(dir, "submitted", time.Now().Format("20060102-150405.000")+".yaml")}, nil
}

// Submit writes the job file and submits the trial and the gang.
func (s Submission) Submit(ctx context.Context) (submit.IDs, error) {
	r, err := s.request()
	if err != nil {
		return submit.IDs{}, err
	}
	if _, err := exec.LookPath("sbatch"); err != nil {
		return submit.IDs{}, failure.Usage("type it on a login node of a Slurm cluster; elsewhere: gangrun run", "sbatch is not on PATH: this machine cannot submit jobs to Slurm")
	}
	// The values of secrets go to the jobs through their environment. They are not written to a file.
	spec, env := s.Spec, os.Environ()
	spec.Env = maps.Clone(spec.Env)
	for _, name := range spec.Secret {
		if value, ok := spec.Env[name]; ok {
			env = append(env, name+"="+value)
			delete(spec.Env, name)
		}
	}
	text, err := jobfile.Marshal(spec)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(r.File), 0o700)
	}
	if err == nil {
		err = atomicfile.WriteFile(r.File, text, 0o600)
	}
	if err != nil {
		return submit.IDs{}, fmt.Errorf("write the job file for Slurm: %w", err)
	}
	ids, err := submit.Send(ctx, submit.Make(r), slices.Clip(env))
	if err != nil {
		return ids, errors.Join(&failure.Error{Code: failure.CodeNoPlacement, Err: fmt.Errorf("the job was refused by Slurm: %w", err), Hint: "gangrun submit --dry-run prints what is submitted; --slurm takes flags of sbatch"}, os.Remove(r.File))
	}
	return ids, nil
}
