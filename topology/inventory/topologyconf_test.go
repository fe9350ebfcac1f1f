package inventory

import (
	"reflect"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestTopology(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want map[string]Site
	}{
		"the manual's": {"##################################################################\n# Slurm's network topology configuration file\n##################################################################\n" +
			"SwitchName=s0 Nodes=dev[0-1]\nSwitchName=s1 Nodes=dev[2-3]\nSwitchName=s2 Switches=s[0-1]\n",
			map[string]Site{"dev0": {"s0", "s2"}, "dev1": {"s0", "s2"}, "dev2": {"s1", "s2"}, "dev3": {"s1", "s2"}}},
		"one level":        {"SwitchName=ib0 Nodes=a,b\n", map[string]Site{"a": {"ib0", ""}, "b": {"ib0", ""}}},
		"three levels":     {"SwitchName=core Switches=r1\nSwitchName=r1 Switches=l1\nSwitchName=l1 Nodes=a LinkSpeed=400000\n", map[string]Site{"a": {"l1", "r1"}}},
		"any case":         {"switchname=L1 NODES=a\nSWITCHNAME=R switches=L1 linkspeed=1 # x\n", map[string]Site{"a": {"L1", "R"}}},
		"continued":        {"SwitchName=l1 \\\n  Nodes=a[1-2] \\ \n\n\nSwitchName=l2 Nodes=b \\", map[string]Site{"a1": {"l1", ""}, "a2": {"l1", ""}, "b": {"l2", ""}}},
		"quoted, and CRLF": {"SwitchName=\"l1\" Nodes=\"a,b\"\r\n", map[string]Site{"a": {"l1", ""}, "b": {"l1", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Topology("t.conf", []byte(c.text))
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestTopologyRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                             "t.conf: names no node",
		"SwitchName=a Switches=a\n":                    `t.conf:1: the switch "a" is above itself`,
		"SwitchNam=a Nodes=b\n":                        `t.conf:1: unknown key "SwitchNam", did you mean "SwitchName"?`,
		"\nSwitchName=a Nods=b\n":                      `t.conf:2: unknown key "Nods", did you mean "Nodes"?`,
		"SwitchName=a Ports=b\n":                       `t.conf:1: unknown key "Ports"`,
		"SwitchName=a Nodes=\n":                        `t.conf:1: Nodes has no value`,
		"SwitchName=a Nodes b\n":                       `t.conf:1: Nodes has no value`,
		"Nodes=b\n":                                    `t.conf:1: the line has no SwitchName`,
		"SwitchName=a\n":                               `t.conf:1: the switch "a" wants either Nodes or Switches`,
		"SwitchName=a Nodes=b Switches=c":              `t.conf:1: the switch "a" wants either Nodes or Switches`,
		"SwitchName=a Nodes=b Nodes=c":                 `t.conf:1: Nodes stands twice`,
		"SwitchName=s[1-2] Nodes=b":                    `t.conf:1: "s[1-2]" is no name of a switch`,
		"SwitchName=a Nodes=b\nSwitchName=a Nodes=c\n": `t.conf:2: the switch "a" stands on line 1 already`,
		"SwitchName=a Nodes=b\nSwitchName=c Nodes=b\n": `t.conf:2: the node "b" is under the switch "a" on line 1 already`,
		"SwitchName=a Nodes=b\nSwitchName=c Switches=a\nSwitchName=d Switches=a": `t.conf:3: the switch "a" is under the switch "c" on line 2 already`,
		"SwitchName=leaf1 Nodes=b\nSwitchName=c Switches=leaf2\n":                `t.conf:2: the switch "leaf2" has no line of its own, did you mean "leaf1"?`,
		"SwitchName=a Switches=b\nSwitchName=b Switches=a\n":                     `t.conf:1: the switch "a" is above itself`,
		"SwitchName=a \\\n Nodes=b[\n":                                           `t.conf:1: "b[" has a [ without its ]`,
		"SwitchName=a Nodes=b!\n":                                                `t.conf:1: "b!" is no host`,
		"SwitchName=a Nodes=b[1-60000]\nSwitchName=c Nodes=d[1-60000]\n":         `t.conf:2: the node list "d[1-60000]" names too many`,
		"include other.conf\n":                                                   `t.conf:1: include is not followed`,
		"BlockName=b1 Nodes=n[1-4]\n":                                            `t.conf:1: topologies of blocks are not read`,
	} {
		sites, err := Topology("t.conf", []byte(text))
		if err == nil || err.Error() != want || sites != nil {
			t.Errorf("%q gives %v, %v\nwant %s", text, sites, err, want)
			continue
		}
		bounded(t, "t.conf", text, List{}, err)
	}
}

func TestLocate(t *testing.T) {
	hosts := []job.Host{{Name: "a"}, {Name: "b", Rack: "own"}, {Name: "c", Switch: "own"}, {Name: "d"}}
	sites := map[string]Site{"a": {"s", "r"}, "b": {"s", "r"}, "c": {"s", "r"}}
	got := Locate(hosts, sites)
	want := []job.Host{{Name: "a", Switch: "s", Rack: "r"}, {Name: "b", Rack: "own"}, {Name: "c", Switch: "own"}, {Name: "d"}}
	if !reflect.DeepEqual(got, want) || hosts[0].Switch != "" {
		t.Errorf("got %+v, and %+v were changed", got, hosts)
	}
}
