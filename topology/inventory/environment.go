package inventory

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// FromEnvironment returns the hosts of the batch system's allocation that this
// process is in, or a List of the Kind None outside of every allocation. Slurm,
// PBS and LSF are known; lookup is os.LookupEnv, and read gives a file's text, as
// ReadFile does. Hosts of Slurm get Switch and Rack from a topology.conf where
// there is one in the usual places.
//
// An allocation that is there but cannot be read is an error: gangrun does not
// fall back to this machine then.
func FromEnvironment(lookup func(string) (string, bool), read func(path string) ([]byte, error)) (List, error) {
	get := func(names ...string) string {
		for _, name := range names {
			if v, ok := lookup(name); ok && strings.TrimSpace(v) != "" {
				return v
			}
		}
		return ""
	}
	e := environment{get, read}
	var systems []string
	var first func() (List, error)
	for _, s := range []struct {
		name string
		in   bool
		list func() (List, error)
	}{
		{"Slurm", get("SLURM_JOB_ID", "SLURM_JOBID") != "", e.slurm},
		{"PBS", get("PBS_JOBID", "PBS_NODEFILE") != "", e.pbs},
		{"LSF", get("LSB_JOBID") != "", e.lsf},
	} {
		if s.in {
			systems = append(systems, s.name)
			if first == nil {
				first = s.list
			}
		}
	}
	if first == nil {
		return List{}, nil
	}
	list, err := first()
	if err == nil && len(systems) > 1 {
		list.Notes = append(list.Notes, fmt.Sprintf("the environment has variables of %s; the allocation of %s is used", strings.Join(systems, " and "), systems[0]))
	}
	return list, err
}

// environment is a process's environment and files.
type environment struct {
	get  func(names ...string) string
	read func(path string) ([]byte, error)
}

func (e environment) slurm() (List, error) {
	nodes := e.get("SLURM_JOB_NODELIST", "SLURM_NODELIST")
	if nodes == "" {
		return List{}, missing("SLURM_JOB_NODELIST", "SLURM_JOB_ID")
	}
	list, err := slurm(slurmJob{
		nodes: nodes, tasks: e.get("SLURM_TASKS_PER_NODE"), cpus: e.get("SLURM_JOB_CPUS_PER_NODE"),
		stated: e.get("SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE") != "",
		step:   e.get("SLURM_STEP_ID", "SLURM_STEPID") != "",
	})
	if err != nil {
		return List{}, err
	}
	places := []string{"/etc/slurm/topology.conf", "/run/slurm/conf/topology.conf"}
	if conf := e.get("SLURM_CONF"); conf != "" {
		places = []string{path.Join(path.Dir(conf), "topology.conf")}
	}
	for _, place := range places {
		text, err := e.read(place)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		sites := map[string]Site(nil)
		if err == nil {
			sites, err = Topology(place, text)
		} else {
			err = fmt.Errorf("%s: %w", place, reason(err))
		}
		if err != nil { // the cluster's file, which the user cannot change
			list.Notes = append(list.Notes, "racks and switches are not known: "+firstLine(err))
			break
		}
		list.Hosts = Locate(list.Hosts, sites)
		break
	}
	return list, nil
}

func (e environment) pbs() (List, error) {
	file := e.get("PBS_NODEFILE")
	if file == "" {
		return List{}, missing("PBS_NODEFILE", "PBS_JOBID")
	}
	return e.nodefile("PBS_NODEFILE", file, PBS)
}

func (e environment) lsf() (List, error) {
	if counts := e.get("LSB_MCPU_HOSTS"); counts != "" {
		return lsfCounts(counts)
	}
	if file := e.get("LSB_DJOB_HOSTFILE"); file != "" {
		return e.nodefile("LSB_DJOB_HOSTFILE", file, LSF)
	}
	if names := e.get("LSB_HOSTS"); names != "" {
		return lsfHosts(names)
	}
	return List{}, missing("LSB_MCPU_HOSTS", "LSB_JOBID")
}

func (e environment) nodefile(variable, file string, kind Kind) (List, error) {
	text, err := e.read(file)
	if err != nil {
		return List{}, one(variable, 0, faultf("unset it, or give --hosts", "its file %s cannot be read: %v", quote(file), reason(err)))
	}
	return nodefile(file, kind, text)
}

// missing is the error of an allocation that one variable shows, while the variable
// with its hosts is not set.
func missing(variable, but string) error {
	return one(variable, 0, faultf("hand on the whole environment of the batch job, unset "+but+", or give --hosts", "is not set, but %s is", but))
}
