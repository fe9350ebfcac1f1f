package inventory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestFromEnvironment(t *testing.T) {
	slurmHost := func(name string, slots int, isHard bool, cores int, site Site) job.Host {
		return job.Host{Name: name, Address: name, Slots: slots, Hard: isHard, Cores: cores, Switch: site.Switch, Rack: site.Rack}
	}
	uid := strconv.Itoa(os.Getuid())
	for name, c := range map[string]struct {
		env   map[string]string
		files map[string]string
		runs  map[string]string // output of commands
		want  List
		err   string
	}{
		"none":             {},
		"empty variables":  {env: map[string]string{"SLURM_JOB_ID": "", "PBS_NODEFILE": "", "LSB_JOBID": " "}},
		"only a node list": {env: map[string]string{"SLURM_NODELIST": "h1", "LSB_HOSTS": "h1"}},

		"Slurm with tasks": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h[01-02],g7", "SLURM_NTASKS": "5", "SLURM_TASKS_PER_NODE": "2(x2),1", "SLURM_JOB_CPUS_PER_NODE": "64(x3)"},
			want: List{Kind: Slurm, Hosts: []job.Host{slurmHost("h01", 2, true, 64, Site{}), slurmHost("h02", 2, true, 64, Site{}), slurmHost("g7", 1, true, 64, Site{})}}},
		"Slurm without": {env: map[string]string{"SLURM_JOBID": "7", "SLURM_NODELIST": "h[1-2]", "SLURM_TASKS_PER_NODE": "32(x2)", "SLURM_JOB_CPUS_PER_NODE": "64(x2)"},
			want: List{Kind: Slurm, Hosts: []job.Host{slurmHost("h1", 32, false, 64, Site{}), slurmHost("h2", 32, false, 64, Site{})}}},
		"Slurm, CPUs alone":  {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h1", "SLURM_JOB_CPUS_PER_NODE": "16"}, want: List{Kind: Slurm, Hosts: []job.Host{slurmHost("h1", 16, false, 16, Site{})}}},
		"Slurm, hosts alone": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h1"}, want: List{Kind: Slurm, Hosts: []job.Host{soft("h1")}}},
		"a step on fewer hosts": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_JOB_NODELIST": "h[1-2]", "SLURM_NTASKS": "1", "SLURM_TASKS_PER_NODE": "1", "SLURM_JOB_CPUS_PER_NODE": "8(x2)"},
			want: List{Kind: Slurm, Notes: []string{"SLURM_TASKS_PER_NODE is that of a step on other hosts and is not used"}, Hosts: []job.Host{slurmHost("h1", 8, false, 8, Site{}), slurmHost("h2", 8, false, 8, Site{})}}},
		"Slurm with switches": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h[1-2]"}, files: map[string]string{"/etc/slurm/topology.conf": "SwitchName=s1 Nodes=h1\nSwitchName=s2 Nodes=h2\nSwitchName=r Switches=s[1-2]\n"},
			want: List{Kind: Slurm, Hosts: []job.Host{slurmHost("h1", 0, false, 0, Site{"s1", "r"}), slurmHost("h2", 0, false, 0, Site{"s2", "r"})}}},
		"switches beside SLURM_CONF": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h1", "SLURM_CONF": "/opt/s/slurm.conf"}, files: map[string]string{"/opt/s/topology.conf": "SwitchName=s1 Nodes=h1\n", "/etc/slurm/topology.conf": "x"},
			want: List{Kind: Slurm, Hosts: []job.Host{slurmHost("h1", 0, false, 0, Site{Switch: "s1"})}}},
		"configless Slurm": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h1"}, files: map[string]string{"/run/slurm/conf/topology.conf": "SwitchName=s1 Nodes=h1\n"},
			want: List{Kind: Slurm, Hosts: []job.Host{slurmHost("h1", 0, false, 0, Site{Switch: "s1"})}}},
		"a bad topology.conf": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h1"}, files: map[string]string{"/etc/slurm/topology.conf": "BlockName=b1 Nodes=h1\nBlockSizes=4\n"},
			want: List{Kind: Slurm, Hosts: []job.Host{soft("h1")}, Notes: []string{"racks and switches are not known: /etc/slurm/topology.conf:1: topologies of blocks are not read"}}},
		"an unreadable topology.conf": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h1"}, files: map[string]string{"/etc/slurm/topology.conf": "broken"},
			want: List{Kind: Slurm, Hosts: []job.Host{soft("h1")}, Notes: []string{"racks and switches are not known: /etc/slurm/topology.conf: input/output error"}}},
		"Slurm, no hosts":        {env: map[string]string{"SLURM_JOB_ID": "7"}, err: `SLURM_JOB_NODELIST: is not set, but SLURM_JOB_ID is`},
		"Slurm, null":            {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "(null)"}, err: `SLURM_JOB_NODELIST: "(null)" is no host`},
		"Slurm, twice":           {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h1,h1"}, err: `SLURM_JOB_NODELIST: names "h1" twice`},
		"Slurm, too few numbers": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h[1-3]", "SLURM_TASKS_PER_NODE": "2(x2)"}, err: `SLURM_TASKS_PER_NODE: "2(x2)" stands for 2 hosts, not for 3`},
		"Slurm, too many CPUs":   {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h[1-3]", "SLURM_JOB_CPUS_PER_NODE": "2(x4)"}, err: `SLURM_JOB_CPUS_PER_NODE: "2(x4)" stands for more than 3 hosts`},
		"Slurm, huge":            {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h[1-100001]"}, err: `SLURM_JOB_NODELIST: the node list "h[1-100001]" names too many`},

		"PBS":              {env: map[string]string{"PBS_JOBID": "1.pbs", "PBS_NODEFILE": "/var/spool/pbs/aux/1.pbs"}, files: map[string]string{"/var/spool/pbs/aux/1.pbs": "n1.lab\nn1.lab\nn2.lab\n"}, want: List{Kind: PBS, Hosts: []job.Host{hard("n1.lab", 2), hard("n2.lab", 1)}}},
		"PBS, bare":        {env: map[string]string{"PBS_NODEFILE": "/n"}, files: map[string]string{"/n": "n1\n"}, want: List{Kind: PBS, Hosts: []job.Host{hard("n1", 1)}}},
		"PBS, no variable": {env: map[string]string{"PBS_JOBID": "1"}, err: `PBS_NODEFILE: is not set, but PBS_JOBID is`},
		"PBS, no file":     {env: map[string]string{"PBS_NODEFILE": "/n"}, err: `PBS_NODEFILE: its file "/n" cannot be read: file does not exist`},
		"PBS, empty file":  {env: map[string]string{"PBS_NODEFILE": "/n"}, files: map[string]string{"/n": "\n"}, err: `/n: names no host`},
		"PBS, bad file":    {env: map[string]string{"PBS_NODEFILE": "/n"}, files: map[string]string{"/n": "n1\nn2 np=4\n"}, err: `/n:2: unknown word "np=4"`},

		"LSF":            {env: map[string]string{"LSB_JOBID": "1", "LSB_HOSTS": "x", "LSB_MCPU_HOSTS": "hostA 4 hostB 2 "}, want: List{Kind: LSF, Hosts: []job.Host{hard("hostA", 4), hard("hostB", 2)}}},
		"LSF, names":     {env: map[string]string{"LSB_JOBID": "1", "LSB_HOSTS": "hostA hostA hostB"}, want: List{Kind: LSF, Hosts: []job.Host{hard("hostA", 2), hard("hostB", 1)}}},
		"LSF, file":      {env: map[string]string{"LSB_JOBID": "1", "LSB_DJOB_HOSTFILE": "/h"}, files: map[string]string{"/h": "a\na\nb\n"}, want: List{Kind: LSF, Hosts: []job.Host{hard("a", 2), hard("b", 1)}}},
		"LSF, no file":   {env: map[string]string{"LSB_JOBID": "1", "LSB_DJOB_HOSTFILE": "/h"}, err: `LSB_DJOB_HOSTFILE: its file "/h" cannot be read: file does not exist`},
		"LSF, no hosts":  {env: map[string]string{"LSB_JOBID": "1"}, err: `LSB_MCPU_HOSTS: is not set, but LSB_JOBID is`},
		"LSF, no number": {env: map[string]string{"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "a 4 b"}, err: `LSB_MCPU_HOSTS: host "b" has no number of slots`},
		"LSF, shifted":   {env: map[string]string{"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "a b 4"}, err: "LSB_MCPU_HOSTS: the number of slots of \"a\" is \"b\"\nLSB_MCPU_HOSTS: \"4\" is a number, no host"},
		"LSF, bad name":  {env: map[string]string{"LSB_JOBID": "1", "LSB_HOSTS": "a -b"}, err: `LSB_HOSTS: "-b" is no host`},

		"Grid Engine": {env: map[string]string{"JOB_ID": "1", "PE_HOSTFILE": "/p"}, files: map[string]string{"/p": "n1.lab 2 all.q@n1.lab UNDEFINED\nn2.lab 1 all.q@n2.lab 0,0\nn1.lab 1 gpu.q@n1.lab <NULL>\n"},
			want: List{Kind: GridEngine, Hosts: []job.Host{hard("n1.lab", 3), hard("n2.lab", 1)}}},
		"Grid Engine, serial job": {env: map[string]string{"JOB_ID": "1", "SGE_TASK_ID": "undefined", "NSLOTS": "1"}},
		"Grid Engine, no file":    {env: map[string]string{"PE_HOSTFILE": "/p"}, err: `PE_HOSTFILE: its file "/p" cannot be read: file does not exist`},
		"Grid Engine, no slots":   {env: map[string]string{"PE_HOSTFILE": "/p"}, files: map[string]string{"/p": "n1 2 q U\nn2\n"}, err: `/p:2: host "n2" has no number of slots`},
		"Grid Engine, bad slots":  {env: map[string]string{"PE_HOSTFILE": "/p"}, files: map[string]string{"/p": "n1 all.q 2\n"}, err: `/p:1: the number of slots of "n1" is "all.q"`},
		"Grid Engine, empty":      {env: map[string]string{"PE_HOSTFILE": "/p"}, files: map[string]string{"/p": ""}, err: `/p: names no host`},

		"OAR":          {env: map[string]string{"OAR_JOB_ID": "1", "OAR_NODEFILE": "/o"}, files: map[string]string{"/o": "n1\nn1\nn2\n"}, want: List{Kind: OAR, Hosts: []job.Host{hard("n1", 2), hard("n2", 1)}}},
		"OAR, old":     {env: map[string]string{"OAR_JOBID": "1", "OAR_FILE_NODES": "/o"}, files: map[string]string{"/o": "n1\n"}, want: List{Kind: OAR, Hosts: []job.Host{hard("n1", 1)}}},
		"OAR, no file": {env: map[string]string{"OAR_JOB_ID": "1"}, err: `OAR_NODEFILE: is not set, but OAR_JOB_ID is`},

		"MPI Operator": {env: map[string]string{"K_MPI_JOB_ROLE": "launcher"}, files: map[string]string{"/etc/mpi/hostfile": "pi-worker-0.pi.default.svc slots=2\npi-worker-1.pi.default.svc slots=2\n"},
			want: List{Kind: MPIOperator, Hosts: []job.Host{hard("pi-worker-0.pi.default.svc", 2), hard("pi-worker-1.pi.default.svc", 2)}}},
		"MPI Operator, Intel MPI": {env: map[string]string{"K_MPI_JOB_ROLE": "launcher", "I_MPI_HYDRA_HOST_FILE": "/h"}, files: map[string]string{"/h": "w0.pi.default.svc:4\n"},
			want: List{Kind: MPIOperator, Hosts: []job.Host{hard("w0.pi.default.svc", 4)}}},
		"MPI Operator v1": {env: map[string]string{"OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh", "OMPI_MCA_orte_default_hostfile": "/h"}, files: map[string]string{"/h": "pi-worker-0 slots=2\npi-worker-1 slots=2\n"},
			want: List{Kind: MPIOperator, Hosts: []job.Host{hard("pi-worker-0", 2), hard("pi-worker-1", 2)}}},
		"MPI Operator v1, no file": {env: map[string]string{"OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh"}, err: `OMPI_MCA_plm_rsh_agent: its file "/etc/mpi/hostfile" cannot be read: file does not exist`},
		"Open MPI with an agent":   {env: map[string]string{"OMPI_MCA_plm_rsh_agent": "/usr/bin/ssh", "OMPI_MCA_orte_default_hostfile": "/h"}},
		"MPI Operator, worker":     {env: map[string]string{"K_MPI_JOB_ROLE": "worker"}},
		"MPI Operator, no file":    {env: map[string]string{"K_MPI_JOB_ROLE": "launcher"}, err: `K_MPI_JOB_ROLE: its file "/etc/mpi/hostfile" cannot be read: file does not exist`},

		"Flux batch": {env: map[string]string{"FLUX_URI": "local:///x"}, runs: map[string]string{"flux getattr security.owner": uid, "flux resource R": `{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3","gpu":"0"}},{"rank":"2","children":{"core":"0,2"}}],"nodelist":["h[1-3]"]}}`},
			want: List{Kind: Flux, Hosts: []job.Host{slurmHost("h1", 4, false, 4, Site{}), slurmHost("h2", 4, false, 4, Site{}), slurmHost("h3", 2, false, 2, Site{})}}},
		"Flux task": {env: map[string]string{"FLUX_URI": "local:///x", "FLUX_JOB_ID": "f1", "FLUX_JOB_SIZE": "1"}, runs: map[string]string{"flux job info f1 R": `{"version":1,"execution":{"R_lite":[{"rank":"17","children":{"core":"3"}}],"nodelist":["h7"]}}`},
			want: List{Kind: Flux, Hosts: []job.Host{slurmHost("h7", 1, false, 1, Site{})}}},
		"the cluster's Flux":     {env: map[string]string{"FLUX_URI": "local:///x"}, runs: map[string]string{"flux getattr security.owner": uid + "1"}},
		"several Flux tasks":     {env: map[string]string{"FLUX_JOB_ID": "f1", "FLUX_JOB_SIZE": "4"}, err: `FLUX_JOB_SIZE: is "4": gangrun is one of several tasks of a Flux job`},
		"Flux, no command":       {env: map[string]string{"FLUX_JOB_ID": "f1"}, err: `flux job info f1 R: does not say which hosts the job has: flux: not found`},
		"Flux, names missing":    {env: map[string]string{"FLUX_JOB_ID": "f1"}, runs: map[string]string{"flux job info f1 R": `{"version":1,"execution":{"R_lite":[{"rank":"0-1"}],"nodelist":["h7"]}}`}, err: `flux job info f1 R: has 1 names for 2 hosts`},
		"Flux, another version":  {env: map[string]string{"FLUX_JOB_ID": "f1"}, runs: map[string]string{"flux job info f1 R": `{"version":2}`}, err: `flux job info f1 R: is in version 2 of the format, not in 1`},
		"Flux, bad rank":         {env: map[string]string{"FLUX_JOB_ID": "f1"}, runs: map[string]string{"flux job info f1 R": `{"version":1,"execution":{"R_lite":[{"rank":"3-1"}]}}`}, err: `flux job info f1 R: "3-1" is no number, and no range of them`},
		"Flux, too many ranks":   {env: map[string]string{"FLUX_JOB_ID": "f1"}, runs: map[string]string{"flux job info f1 R": `{"version":1,"execution":{"R_lite":[{"rank":"0-100000"}]}}`}, err: `flux job info f1 R: there are more than 100000 hosts`},
		"Flux, brokers share it": {env: map[string]string{"FLUX_JOB_ID": "f1"}, runs: map[string]string{"flux job info f1 R": `{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],"nodelist":["h7,h7"]}}`}, want: List{Kind: Flux, Hosts: []job.Host{slurmHost("h7", 2, false, 2, Site{})}}},

		"two systems, same hosts": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h1", "LSB_JOBID": "1", "LSB_HOSTS": "H1.lab"},
			want: List{Kind: Slurm, Hosts: []job.Host{soft("h1")}, Notes: []string{"the environment has variables of Slurm and LSF; the allocation of Slurm is used"}}},
		"one inside the other": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h[1-3]", "PE_HOSTFILE": "/p"}, files: map[string]string{"/p": "h2 4 q U\n"},
			want: List{Kind: GridEngine, Hosts: []job.Host{hard("h2", 4)}, Notes: []string{"the environment has variables of Slurm and Grid Engine; the allocation of Grid Engine is used"}}},
		"one gives no hosts": {env: map[string]string{"SLURM_JOB_ID": "7", "LSB_JOBID": "1", "LSB_HOSTS": "x"},
			want: List{Kind: LSF, Hosts: []job.Host{hard("x", 1)}, Notes: []string{"SLURM_JOB_ID is set, but the hosts of Slurm are not known: SLURM_JOB_NODELIST: is not set, but SLURM_JOB_ID is", "the environment has variables of Slurm and LSF; the allocation of LSF is used"}}},
		"none gives hosts": {env: map[string]string{"SLURM_JOB_ID": "7", "LSB_JOBID": "1"}, err: `SLURM_JOB_NODELIST: is not set, but SLURM_JOB_ID is`},
		"contradiction": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h[1-5]", "LSB_JOBID": "1", "LSB_HOSTS": "h1 x"},
			err: `SLURM_JOB_ID and LSB_JOBID: the hosts differ: Slurm gives "h1" "h2" "h3" and 2 more, LSF gives "h1" "x"`},
		"addresses are not shortened": {env: map[string]string{"PBS_NODEFILE": "/n", "LSB_JOBID": "1", "LSB_HOSTS": "10.0.0.1"}, files: map[string]string{"/n": "10.0.0.2\n"},
			err: `PBS_NODEFILE and LSB_JOBID: the hosts differ: PBS gives "10.0.0.2", LSF gives "10.0.0.1"`},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := FromEnvironment(
				func(k string) (string, bool) { v, ok := c.env[k]; return v, ok },
				func(path string) ([]byte, error) {
					switch text, ok := c.files[path]; {
					case !ok:
						return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
					case text == "broken":
						return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("input/output error")}
					default:
						return []byte(text), nil
					}
				},
				func(name string, args ...string) ([]byte, error) {
					if out, ok := c.runs[strings.Join(append([]string{name}, args...), " ")]; ok {
						return []byte(out), nil
					}
					return nil, errors.New(name + ": not found")
				})
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Fatalf("error %v, want %s", err, c.err)
				}
				bounded(t, "", strings.Repeat("\n", 10), list, err)
				return
			}
			if err != nil || !reflect.DeepEqual(list, c.want) {
				t.Errorf("got  %+v, %v\nwant %+v", list, err, c.want)
			}
		})
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte("h1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(path); err != nil || string(text) != "h1\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.Truncate(path, 2*MaxSize); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(path); err != nil || len(text) != MaxSize+1 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if text, err := ReadFile("/dev/zero"); err == nil || reason(err).Error() != "it is a character device, not a regular file" {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := ReadFile(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
