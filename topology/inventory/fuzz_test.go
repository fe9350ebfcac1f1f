package inventory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func FuzzHosts(f *testing.F) {
	for _, s := range []string{"h1", "h1,h2:4", "bob@h[01-16]:8,[fd00::1]:2, [::1]", "rack[01-02]n[001-004,7]", "h1:0", "h[1-99999999999]", "h[1-3", "-oProxyCommand=x", ",", "a@b@c:1:2", "[fe80::1%eth0]", "10.0.0.256"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Hosts(text)
		bounded(t, "--hosts", text, list, err)
		if err == nil && len(list.Hosts) < 1000 {
			again, err := Hosts(write(list, Flag))
			if err != nil {
				t.Fatal(err)
			}
			same(t, again, list, text)
		}
	})
}

func FuzzHostfile(f *testing.F) {
	for _, s := range []string{"h1\nh2\n", "h1 slots=4\nbob@h2 slots = 2 max_slots=4 # x\nh2\n", "h1:4\nh2:2 user=bob binding=rr\nh1\n[::1]:3\n", "h1\nh1\nh2",
		"h1 slots=4\nh2:2\n", "rank 0=h1 slot=1\n", "hosts:\n  - name: h1\n", "h1:4:mlx5_0\n", "^h1\n", "@h1\n", "h1 slots=\n", "\ufeffh1 // c\n", "h1 =\n", "= =", "h1\r\nh2\r\n", "a@b:1", "[::1] slots=2", "h1 username=x user_name=y"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Hostfile("hosts.txt", text)
		bounded(t, "hosts.txt", string(text), list, err)
		if err != nil {
			return
		}
		out := write(list, list.Kind)
		again, err := Hostfile("hosts.txt", []byte(out))
		if err != nil {
			t.Fatalf("%v from %q", err, out)
		}
		same(t, again, list, string(text))
	})
}

func FuzzNodefile(f *testing.F) {
	for _, s := range []string{"h1\nh1\nh2\n", "", "h1 2\n", "\x00", "[::1]\n", "# x\nh1", "4\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := nodefile("nodes", PBS, text)
		bounded(t, "nodes", string(text), list, err)
		if err == nil {
			again, err := nodefile("nodes", PBS, []byte(write(list, Nodefile)))
			if err != nil {
				t.Fatal(err)
			}
			same(t, again, list, string(text))
		}
	})
}

func FuzzLSF(f *testing.F) {
	for _, s := range []string{"h1 2 h2 1", "h1 h1 h2", "h1 0", "h1", "", "h1 -1 h1 131072 h1 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := lsfHosts(text)
		bounded(t, "LSB_HOSTS", text, list, err)
		list, err = lsfCounts(text)
		bounded(t, "LSB_MCPU_HOSTS", text, list, err)
		if err != nil {
			return
		}
		var words []string
		for _, h := range list.Hosts {
			words = append(words, bracketed(h.Name), fmt.Sprint(h.Slots))
		}
		again, err := lsfCounts(strings.Join(words, " "))
		if err != nil {
			t.Fatal(err)
		}
		same(t, again, list, text)
	})
}

func FuzzGridEngine(f *testing.F) {
	for _, s := range []string{"h1 2 all.q@h1 UNDEFINED\nh2.lab 1 all.q@h2.lab 0,0:0,1\n", "h1 2 a.q x\nh1 3 b.q x\n", "h1\n", "h1 0 q\n", "", "4 h1\n", "h1 131072\nh1 131072\n", "\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := gridEngine("hostfile", text)
		bounded(t, "hostfile", string(text), list, err)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, h := range list.Hosts {
			fmt.Fprintln(&again, bracketed(h.Name), h.Slots, "all.q", "UNDEFINED")
		}
		second, err := gridEngine("hostfile", []byte(again.String()))
		if err != nil {
			t.Fatal(err)
		}
		same(t, second, list, string(text))
	})
}

func FuzzFluxR(f *testing.F) {
	for _, s := range []string{`{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3","gpu":"0"}}],"nodelist":["h[1-2]"],"expiration":0}}`,
		`{"version":1,"execution":{"R_lite":[{"rank":"0,1"}],"nodelist":["h1","h1"]}}`, `{"version":1,"execution":{"R_lite":[{"rank":"0-99999999"}]}}`, "{}", "", `{"version":2}`,
		`{"version":1,"execution":{"R_lite":[{"rank":"1-0","children":{"core":"x"}}],"nodelist":["-h","H","h"]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := fluxR("flux resource R", text)
		bounded(t, "flux resource R", "", list, err)
	})
}

func FuzzNodeList(f *testing.F) {
	for _, s := range []string{"h[1-3,7]", "rack[01-02]n[001-004]", "h[001-10]", "h[1-010]", "h[3-1]", "h[]", "]", "h[[1]]", "a,,b", "h[1-100000]", "h[1-1000][1-1000][1-1000]", "h[000000000000000000-1]", "h[999999999999999999]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names, bad := expand(text, MaxHosts)
		if bad != nil {
			if bad.text == "" || names != nil {
				t.Errorf("fault %+v with names %q", bad, names)
			}
			return
		}
		if len(names) == 0 || len(names) > MaxHosts {
			t.Fatalf("%d names", len(names))
		}
		for _, n := range names {
			if len(n) > maxName || strings.ContainsAny(n, "[],") || n == "" {
				t.Fatalf("name %q", n)
			}
		}
		if len(names) < 1000 {
			again, bad := expand(strings.Join(names, ","), MaxHosts)
			if bad != nil || !slices.Equal(again, trimmed(names)) {
				t.Errorf("%q gives %q, which give %q, %v", text, names, again, bad)
			}
		}
	})
}

func FuzzSlurm(f *testing.F) {
	f.Add("h[1-3,7]", "2(x3),1", "64(x4)", true, false)
	f.Add("h1", "1", "", false, true)
	f.Add("h[1-2]", "2(x99999999999)", "(x2)", false, false)
	f.Add("h[1-2]", "2(x3)", "8", false, true)
	f.Add("(null)", "", "", false, false)
	f.Fuzz(func(t *testing.T, nodes, tasks, cpus string, stated, step bool) {
		list, err := slurm(slurmJob{nodes, tasks, cpus, stated, step})
		bounded(t, "", nodes+tasks+cpus, list, err)
	})
}

func FuzzTopology(f *testing.F) {
	for _, s := range []string{"SwitchName=s1 Nodes=h[1-3]\nSwitchName=s2 Nodes=h[4-6] LinkSpeed=100\nSwitchName=r Switches=s[1-2]\n",
		"switchname=a switches=b\nSwitchName=b Switches=a\n", "SwitchName=a \\\n Nodes=h1 # c\n", "SwitchName=a Nodes=h[1-100000]\nSwitchName=b Nodes=x", "SwitchName=a Switches=a", "include x\n", "BlockName=b Nodes=h1", "\\", "SwitchName=\"a\" Nodes=\"h1\"", "SwitchNam=a Nodes=h1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		sites, err := Topology("topology.conf", text)
		if err != nil {
			bounded(t, "topology.conf", string(text), List{}, err)
			return
		}
		if len(sites) == 0 || len(sites) > MaxHosts {
			t.Fatalf("%d sites", len(sites))
		}
		hosts := []job.Host{{Name: "none"}, {Name: "own", Rack: "r"}}
		for name, site := range sites {
			if site.Switch == "" || label("switch", site.Switch) != nil || site.Rack == site.Switch {
				t.Errorf("host %q is at %+v", name, site)
			}
		}
		for i, h := range Locate(hosts, sites) {
			if s := sites[h.Name]; hosts[i].Switch != "" || i == 0 && (h.Switch != s.Switch || h.Rack != s.Rack) || i == 1 && h.Rack != "r" {
				t.Errorf("host %+v was located at %+v", h, s)
			}
		}
	})
}

// fakeTopo reads a word for each GPU. The word has its links, separated by commas. An x means no link.
func fakeTopo(text []byte) ([]job.Device, [][]job.Link, []job.NIC, error) {
	rows := strings.Fields(string(text))
	if len(rows) == 0 {
		return nil, nil, nil, errors.New("no matrix")
	}
	var devices []job.Device
	var links [][]job.Link
	for i, row := range rows {
		devices = append(devices, job.Device{Index: i})
		var of []job.Link
		for l := range strings.SplitSeq(row, ",") {
			of = append(of, job.Link(strings.Trim(l, "x")))
		}
		links = append(links, of)
	}
	return devices, links, []job.NIC{{Name: "mlx5_0", Links: links[0]}}, nil
}

// filesOf returns Files that are in a map.
func filesOf(m map[string]string) Files {
	return Files{Topo: fakeTopo, Read: func(path string) ([]byte, error) {
		text, ok := m[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}}
}

func FuzzYAML(f *testing.F) {
	for _, s := range []string{blocks(f)["The YAML inventory"], "---", "hosts: []", "hosts:\n  - name: h1\n    slot: 3\n", "hosts: &a [*a]", "hosts:\n- &h {name: h1}\n- *h\n", "hosts: [{name: 'h[1-100000]', gpus: 256}]",
		"hosts: [{name: h1, topo: two.txt, busy: [0, 1]}]", "hosts: [{name: h1, gpus: 2, busy: [2]}]", "hosts: [{name: h1, topo: bad.txt}]", "a: b: c", "\t- x", "--- a\n--- b", "hosts: [{name: '[fd00::1]', address: '[::1]'}]",
		"hosts: [{name: 'h[1-2]', address: '10.0.0.[1-2]'}]", "hosts: [{<<: *x}]", "hosts: [{name: ~, slots: 0, rack: [], switch: '', busy: {}}]", "[[[[", "? [a]\n: b", "hosts: [{name: h1, topo: '~/x'}]", "%YAML 9\n"} {
		f.Add([]byte(s))
	}
	files := filesOf(map[string]string{"two.txt": "x,NV1 NV1,x", "dgx-a100.txt": "x,NV12 NV12,x", "bad.txt": ""})
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := YAML("lab.yaml", text, files)
		bounded(t, "lab.yaml", string(text), list, err)
		if err == nil {
			again, err := YAML("lab.yaml", text, files)
			if err != nil {
				t.Fatal(err)
			}
			same(t, again, list, string(text))
		}
	})
}

func FuzzFromEnvironment(f *testing.F) {
	f.Add("SLURM_JOB_ID=1\nSLURM_JOB_NODELIST=h[1-2]\nSLURM_TASKS_PER_NODE=2(x2)", "SwitchName=s Nodes=h1")
	f.Add("PBS_JOBID=1\nPBS_NODEFILE=/n", "h1\nh1\n")
	f.Add("LSB_JOBID=1\nLSB_MCPU_HOSTS=h1 2", "")
	f.Add("LSB_JOBID=1\nLSB_DJOB_HOSTFILE=/n", "h1\n")
	f.Add("PE_HOSTFILE=/n", "h1 2 q UNDEFINED\n")
	f.Add("OAR_JOB_ID=1\nOAR_NODEFILE=/n\nPBS_NODEFILE=/n", "h1\nh1\n")
	f.Add("K_MPI_JOB_ROLE=launcher", "h1 slots=2\n")
	f.Add("FLUX_URI=local:///x", `{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3"}}],"nodelist":["h[1-2]"]}}`)
	f.Add("FLUX_JOB_ID=f1\nSLURM_JOB_ID=1\nSLURM_JOB_NODELIST=h1", `{"version":1,"execution":{"R_lite":[{"rank":"0"}],"nodelist":["h1"]}}`)
	f.Add("", "")
	f.Fuzz(func(t *testing.T, env, file string) {
		m := map[string]string{}
		for l := range strings.SplitSeq(env, "\n") {
			k, v, _ := strings.Cut(l, "=")
			m[k] = v
		}
		list, err := FromEnvironment(func(k string) (string, bool) { v, ok := m[k]; return v, ok },
			func(string) ([]byte, error) { return []byte(file), nil },
			func(_ string, args ...string) ([]byte, error) {
				if args[0] == "getattr" {
					return fmt.Appendln(nil, os.Getuid()), nil
				}
				return []byte(file), nil
			})
		if err == nil && list.Kind == None {
			if !reflect.DeepEqual(list, List{}) {
				t.Errorf("%+v outside of an allocation", list)
			}
			return
		}
		bounded(t, "", env+"\n"+file, list, err)
	})
}
