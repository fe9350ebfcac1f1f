package inventory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestFromEnvironment(t *testing.T) {
	slurmHost := func(name string, slots int, isHard bool, cores int, site Site) job.Host {
		return job.Host{Name: name, Address: name, Slots: slots, Hard: isHard, Cores: cores, Switch: site.Switch, Rack: site.Rack}
	}
	for name, c := range map[string]struct {
		env   map[string]string
		files map[string]string
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

		"two systems": {env: map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h1", "LSB_JOBID": "1", "LSB_HOSTS": "x"},
			want: List{Kind: Slurm, Hosts: []job.Host{soft("h1")}, Notes: []string{"the environment has variables of Slurm and LSF; the allocation of Slurm is used"}}},
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
