package inventory

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// FromEnvironment returns the hosts that a batch system has allocated to this process. If there is
// no allocation, it returns a List of the Kind None. lookup is os.LookupEnv. readFile returns a
// file's text, as ReadFile does. run returns the output of a command, as Output does. Hosts of
// Slurm get Switch and Rack if there is a topology.conf in one of the usual places.
//
// If an allocation exists but cannot be read, FromEnvironment returns an error, so that gangrun
// does not use this machine instead. If several batch systems name hosts, FromEnvironment uses
// the allocation whose hosts are part of every other allocation. If there is no such
// allocation, it returns an error.
func FromEnvironment(lookup func(string) (string, bool), readFile func(path string) ([]byte, error), run func(name string, args ...string) ([]byte, error)) (List, error) {
	get := func(names ...string) string {
		for _, name := range names {
			if v, ok := lookup(name); ok && strings.TrimSpace(v) != "" {
				return v
			}
		}
		return ""
	}
	e := environment{get, readFile, run}
	var found []allocation
	for _, s := range []struct {
		name  string
		signs []string // variables, each of which shows that the system is there
		list  func() (List, error)
	}{
		{"Slurm", []string{"SLURM_JOB_ID", "SLURM_JOBID"}, e.slurm},
		{"PBS", []string{"PBS_JOBID", "PBS_NODEFILE"}, e.pbs},
		{"LSF", []string{"LSB_JOBID"}, e.lsf},
		{"Grid Engine", []string{"PE_HOSTFILE"}, e.gridEngine},
		{"OAR", []string{"OAR_JOB_ID", "OAR_JOBID"}, e.oar},
		{"Flux", []string{"FLUX_JOB_ID", "FLUX_URI"}, e.flux},
		{"the MPI Operator", []string{"K_MPI_JOB_ROLE", "OMPI_MCA_plm_rsh_agent"}, e.mpiOperator},
	} {
		for _, sign := range s.signs {
			if get(sign) == "" {
				continue
			}
			if list, err := s.list(); err != nil || list.Kind != None {
				found = append(found, allocation{s.name, sign, list, err})
			}
			break
		}
	}
	return choose(found)
}

// environment gives access to the variables, files and commands of a process.
type environment struct {
	get  func(names ...string) string
	read func(path string) ([]byte, error)
	run  func(name string, args ...string) ([]byte, error)
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
	text, err := e.text(variable, file)
	if err != nil {
		return List{}, err
	}
	return nodefile(file, kind, text)
}

// text reads a file whose path is in a variable.
func (e environment) text(variable, file string) ([]byte, error) {
	text, err := e.read(file)
	if err != nil {
		return nil, one(variable, 0, faultf("unset it, or give --hosts", "its file %s cannot be read: %v", quote(file), reason(err)))
	}
	return text, nil
}

// gridEngine reads the hosts of a parallel environment. A job without a parallel environment has a single slot,
// and no list of hosts.
func (e environment) gridEngine() (List, error) {
	file := e.get("PE_HOSTFILE")
	text, err := e.text("PE_HOSTFILE", file)
	if err != nil {
		return List{}, err
	}
	return gridEngine(file, text)
}

func (e environment) oar() (List, error) {
	for _, name := range []string{"OAR_NODEFILE", "OAR_NODE_FILE", "OAR_FILE_NODES"} {
		if file := e.get(name); file != "" {
			return e.nodefile(name, file, OAR)
		}
	}
	return List{}, missing("OAR_NODEFILE", "OAR_JOB_ID")
}

// mpiOperator reads the hostfile of an MPIJob's launcher. Workers have no hostfile. Version 2 of the operator
// sets K_MPI_JOB_ROLE. Version 1 sets the program with which mpirun starts its daemons.
func (e environment) mpiOperator() (List, error) {
	file, variable := "/etc/mpi/hostfile", "K_MPI_JOB_ROLE"
	switch {
	case e.get("K_MPI_JOB_ROLE") == "launcher":
	case e.get("K_MPI_JOB_ROLE") == "" && e.get("OMPI_MCA_plm_rsh_agent") == "/etc/mpi/kubexec.sh":
		variable = "OMPI_MCA_plm_rsh_agent"
	default:
		return List{}, nil
	}
	for _, name := range []string{"OMPI_MCA_orte_default_hostfile", "I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE"} {
		if v := e.get(name); v != "" {
			file, variable = v, name
			break
		}
	}
	text, err := e.text(variable, file)
	if err != nil {
		return List{}, err
	}
	list, err := Hostfile(file, text)
	if err == nil {
		list.Kind = MPIOperator
	}
	return list, err
}

// missing returns the error if the variable that shows an allocation is set, but the variable with its hosts is
// not.
func missing(variable, but string) error {
	return one(variable, 0, faultf("hand on the whole environment of the batch job, unset "+but+", or give --hosts", "is not set, but %s is", but))
}
