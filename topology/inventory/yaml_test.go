package inventory

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/probe"
)

func TestYAML(t *testing.T) {
	two := map[string]string{"lab/two.txt": "x,NV1 NV1,x", "/abs/one.txt": "x"}
	for name, c := range map[string]struct {
		text string
		want []job.Host
	}{
		"a name":         {"hosts:\n  - name: h1\n", []job.Host{soft("h1")}},
		"JSON":           {"{\"hosts\": [{\"name\": \"h1\", \"slots\": 2}]}", []job.Host{hard("h1", 2)}},
		"numbers, words": {"hosts: [{name: 10.0.0.1, rack: 7, switch: on, slots: '4'}]", []job.Host{{Name: "10.0.0.1", Address: "10.0.0.1", Rack: "7", Switch: "on", Slots: 4, Hard: true}}},
		"addresses":      {"hosts: [{name: 'h[1-2]', address: '10.0.0.[8-9]'}, {name: h3, address: '[FD00::1]'}, {name: '[::1]'}]", []job.Host{{Name: "h1", Address: "10.0.0.8"}, {Name: "h2", Address: "10.0.0.9"}, {Name: "h3", Address: "fd00::1"}, soft("::1")}},
		"gpus, busy":     {"hosts:\n- {name: h1, gpus: 2,\n   busy: [1]}\n", []job.Host{{Name: "h1", Address: "h1", Devices: []job.Device{{UUID: "GPU0"}, {UUID: "GPU1", Index: 1, Busy: "busy by lab/lab.yaml:3"}}}}},
		"nothing busy":   {"hosts: [{name: h1, busy: []}]", []job.Host{soft("h1")}},
		"topo": {"hosts: [{name: 'h[1-2]', topo: two.txt, busy: [0]}, {name: h3, topo: /abs/one.txt}]", []job.Host{
			{Name: "h1", Address: "h1", Devices: []job.Device{{UUID: "GPU0", Busy: "busy by lab/lab.yaml:1"}, {UUID: "GPU1", Index: 1}}, Links: [][]job.Link{{"", "NV1"}, {"NV1", ""}}, NICs: []job.NIC{{Name: "mlx5_0", Links: []job.Link{"", "NV1"}}}},
			{Name: "h2", Address: "h2", Devices: []job.Device{{UUID: "GPU0", Busy: "busy by lab/lab.yaml:1"}, {UUID: "GPU1", Index: 1}}, Links: [][]job.Link{{"", "NV1"}, {"NV1", ""}}, NICs: []job.NIC{{Name: "mlx5_0", Links: []job.Link{"", "NV1"}}}},
			{Name: "h3", Address: "h3", Devices: []job.Device{{UUID: "GPU0"}}, Links: [][]job.Link{{""}}, NICs: []job.NIC{{Name: "mlx5_0", Links: []job.Link{""}}}}}},
		"aliases": {"hosts:\n- name: h1\n  busy: &b [0]\n  gpus: &n 1\n- name: h2\n  busy: *b\n  gpus: *n\n", []job.Host{
			{Name: "h1", Address: "h1", Devices: []job.Device{{UUID: "GPU0", Busy: "busy by lab/lab.yaml:3"}}}, {Name: "h2", Address: "h2", Devices: []job.Device{{UUID: "GPU0", Busy: "busy by lab/lab.yaml:6"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := YAML("lab/lab.yaml", []byte(c.text), filesOf(two))
			if err != nil {
				t.Fatal(err)
			}
			if list.Kind != Inventory || list.Users != nil || list.Notes != nil || !reflect.DeepEqual(list.Hosts, c.want) {
				t.Errorf("got  %+v\nwant %+v", list, c.want)
			}
		})
	}
}

func TestYAMLRefused(t *testing.T) {
	files := map[string]string{"two.txt": "x,NV1 NV1,x", "empty.txt": "", "ragged.txt": "x,NV1 NV1", "large.txt": strings.Repeat(" ", MaxTopo+1)}
	for text, want := range map[string]string{
		"":                  `l.yaml: names no host`,
		"hosts: []\n":       `l.yaml: names no host`,
		"- h1\n":            `l.yaml:1: the inventory wants a mapping, not a list`,
		"h1\n":              `l.yaml:1: the inventory wants a mapping, not "h1"`,
		"host: []\n":        `l.yaml:1: unknown key "host", did you mean "hosts"?`,
		"hosts:\n":          `l.yaml:1: hosts wants a list, not nothing`,
		"hosts: {h1: {}}\n": `l.yaml:1: hosts wants a list, not a mapping`,
		"hosts: !!python/object:x [{name: h1}]\n":           `l.yaml:1: the tag "!!python/object:x" is not allowed here in an inventory`,
		"hosts:\n- !host {name: !env h1}\n":                 "l.yaml:2: the tag \"!host\" is not allowed here in an inventory\nl.yaml:2: the tag \"!env\" is not allowed here in an inventory",
		"hosts: [h1]\n":                                     `l.yaml:1: a host wants a mapping, not "h1"`,
		"hosts:\n- name: h1\n  slot: 4\n":                   `l.yaml:3: unknown key "slot", did you mean "slots"?`,
		"hosts:\n- name: h1\n  colour: 4\n":                 `l.yaml:3: unknown key "colour"`,
		"hosts:\n- name: h1\n  name: h2\n":                  `l.yaml:3: the key "name" stands here and on line 2`,
		"hosts:\n- name: h1\n- name: h1\n":                  `l.yaml:3: host "h1" stands on line 2 already`,
		"hosts:\n- name: h[1-4]\n- name: h3\n":              `l.yaml:3: host "h3" stands on line 2 already`,
		"hosts:\n- &a {name: h1}\n- *a\n":                   `l.yaml:3: host "h1" stands on line 2 already`,
		"hosts:\n- name: H1\n- name: h2\n- name: h1\n":      `l.yaml:4: host "h1" is host "H1" on line 2 in other letters`,
		"hosts:\n- name: h[1-4]\n- name: H3.\n- name: H3\n": "l.yaml:3: \"H3.\" is no host\nl.yaml:4: host \"H3\" is host \"h3\" on line 2 in other letters",
		"hosts:\n- name: h1\n  address: 10.0.0.1\n- name: h2\n  rack: r\n  address: 10.0.0.1\n": `l.yaml:6: host "h2" has the address "10.0.0.1", as host "h1" on line 2 has`,
		"hosts:\n- {name: h1, address: X.lab}\n- {name: x.lab}\n":                               `l.yaml:3: host "x.lab" has the address "x.lab", as host "h1" on line 2 has`,
		"hosts:\n- {name: h1, address: 10.0.0.1}\n- {name: h2, address: '[::ffff:10.0.0.1]'}\n": `l.yaml:3: host "h2" has the address "::ffff:10.0.0.1", as host "h1" on line 2 has`,
		"hosts:\n- {name: 'h[1-2]', address: '10.0.0.[7,7]'}\n":                                 `l.yaml:2: host "h2" has the address "10.0.0.7", as host "h1" on line 2 has`,
		"hosts:\n- slots: 4\n":                                                `l.yaml:2: the host has no name`,
		"hosts: [{name: }]":                                                   `l.yaml:1: name wants a name, or a node list such as h[01-16], not nothing`,
		"hosts: [{name: [h1]}]":                                               `l.yaml:1: name wants a name, or a node list such as h[01-16], not a list`,
		"hosts: [{name: 'h 1'}]":                                              `l.yaml:1: "h 1" is no host`,
		"hosts: [{name: 'h[1-4'}]":                                            `l.yaml:1: "h[1-4" has a [ without its ]`,
		"hosts: [{name: 'h[1-100001]'}]":                                      `l.yaml:1: the node list "h[1-100001]" names too many`,
		"hosts: [{name: 'h[1-100000]'}, {name: x}]":                           `l.yaml:1: there are more than 100000 hosts`,
		"hosts: [{name: 'h[1-2000]', gpus: 256}]":                             `l.yaml:1: there are more than 262144 GPUs`,
		"hosts: [{name: 'h[1-2]', address: 10.0.0.1}]":                        `l.yaml:1: address is 1 addresses for 2 hosts`,
		"hosts: [{name: h1, address: 10.0.0.300}]":                            `l.yaml:1: "10.0.0.300" is no IPv4 address`,
		"hosts: [{name: h1, address: 'http://x'}]":                            `l.yaml:1: "http://x" is no host`,
		"hosts: [{name: h1, slots: 0}]":                                       `l.yaml:1: slots is "0"`,
		"hosts: [{name: h1, slots: 1e3}]":                                     `l.yaml:1: slots is "1e3"`,
		"hosts: [{name: h1, slots: 9999999999999999999999}]":                  `l.yaml:1: slots is "9999999999999999999999"`,
		"hosts: [{name: h1, slots: [4]}]":                                     `l.yaml:1: slots wants a whole number, not a list`,
		"hosts: [{name: h1, rack: ''}]":                                       `l.yaml:1: rack wants a name, not nothing`,
		"hosts: [{name: h1, rack: ' r'}]":                                     `l.yaml:1: " r" is no name of a rack`,
		"hosts: [{name: h1, gpus: 257}]":                                      `l.yaml:1: gpus is "257"`,
		"hosts: [{name: h1, gpus: 2, topo: two.txt}]":                         `l.yaml:1: gpus stands beside topo, which lists the GPUs already`,
		"hosts: [{name: h1, topo: none.txt}]":                                 `l.yaml:1: the topo file "none.txt" cannot be read: file does not exist`,
		"hosts: [{name: h1, topo: empty.txt}]":                                `l.yaml:1: the topo file "empty.txt": no matrix`,
		"hosts: [{name: h1, topo: ragged.txt}, {name: h2, topo: ragged.txt}]": `l.yaml:1: the topo file "ragged.txt" does not list every pair of GPUs`,
		"hosts: [{name: h1, topo: large.txt}]":                                `l.yaml:1: the topo file "large.txt" is larger than 1 MiB`,
		"hosts: [{name: h1, topo: ~/two.txt}]":                                `l.yaml:1: topo "~/two.txt" begins with ~, which only a shell expands`,
		"hosts: [{name: h1, topo: \"a\\0\"}]":                                 `l.yaml:1: topo "a\x00" is no path`,
		"hosts: [{name: h1, busy: [0]}]":                                      `l.yaml:1: busy has 0, but the host has 0 GPUs`,
		"hosts: [{name: h1, topo: two.txt, busy: [2]}]":                       `l.yaml:1: busy has 2, but the host has 2 GPUs`,
		"hosts: [{name: h1, gpus: 2, busy: [1, 1]}]":                          `l.yaml:1: busy has 1 twice`,
		"hosts: [{name: h1, gpus: 2, busy: [-1]}]":                            `l.yaml:1: busy has "-1", which is no index of a GPU`,
		"hosts: [{name: h1, gpus: 2, busy: 1}]":                               `l.yaml:1: busy wants a list of indices of GPUs, not "1"`,
		"hosts: [{name: h1, gpus: 2, busy: [[1]]}]":                           `l.yaml:1: an item of busy wants the index of a GPU, not a list`,
		"hosts: &a [*a]\n":                                                    `l.yaml:1: a host wants a mapping, not a list`,
		"hosts:\n- name: &n {x: *n}\n":                                        `l.yaml:2: name wants a name, or a node list such as h[01-16], not a mapping`,
		"hosts:\n- name: h1\n  <<: {slots: 2}\n":                              `l.yaml:3: an inventory has no merge key <<`,
		"hosts:\n- ? [a]\n  : b\n":                                            "l.yaml:2: a key wants a name, not a list\nl.yaml:2: the host has no name",
		"hosts:\n\t- name: h1\n":                                              `l.yaml:2: a tab stands in the indentation`,
		"hosts: [{name: h1}\n":                                                `l.yaml:1: is not YAML: did not find expected ',' or ']'`,
		"hosts: [{name: h1}]\n---\nhosts: []\n":                               `l.yaml:2: a second document begins here, but an inventory is one`,
		"hosts: [*x]\n":                                                       `l.yaml:1: the alias "*x" has no anchor before it`,
		"\xff\xfeh\x00":                                                       `l.yaml:1: is text in UTF-16, not in UTF-8`,
		"#" + strings.Repeat(" ", MaxYAML):                                    `l.yaml: is larger than an inventory may be (2097152 bytes)`,
	} {
		list, err := YAML("l.yaml", []byte(text), filesOf(files))
		if err == nil || err.Error() != want {
			t.Errorf("%q gives\n%v\nwant\n%s", text[:min(len(text), 100)], err, want)
			continue
		}
		bounded(t, "l.yaml", text, list, err)
	}
}

// TestYAMLMachines checks that the saved output of nvidia-smi on real machines becomes hosts.
func TestYAMLMachines(t *testing.T) {
	list, err := YAML("../probe/testdata/lab.yaml", []byte("hosts:\n- {name: 'd[1-3]', topo: dgx-a100.txt, busy: [0, 3], rack: r1}\n- {name: v1, topo: dgx-1v.txt}\n"), Files{
		Read: ReadFile,
		Topo: func(text []byte) ([]job.Device, [][]job.Link, []job.NIC, error) { return probe.ParseTopo(string(text)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range list.Hosts {
		if len(h.Devices) != 8 || len(h.Links) != 8 || len(h.NICs) == 0 {
			t.Fatalf("host %s has %d GPUs, %d rows of links, %d NICs", h.Name, len(h.Devices), len(h.Links), len(h.NICs))
		}
		for d, dev := range h.Devices {
			if dev.UUID != fmt.Sprintf("GPU%d", d) || dev.Index != d || (dev.Busy != "") != (i < 3 && (d == 0 || d == 3)) {
				t.Errorf("host %s has the device %+v", h.Name, dev)
			}
		}
	}
}

// TestSound checks that inconsistent results of a parser for topologies are rejected.
func TestSound(t *testing.T) {
	devices := []job.Device{{Index: 0}, {Index: 1}}
	for name, c := range map[string]struct {
		devices []job.Device
		links   [][]job.Link
		nics    []job.NIC
		want    string
	}{
		"no GPU":          {nil, nil, nil, "describes no GPU"},
		"two of an index": {[]job.Device{{}, {UUID: "x"}}, nil, nil, "lists two GPUs with the index 0"},
		"two of a name":   {[]job.Device{{Index: 1}, {UUID: "GPU1"}}, nil, nil, "lists two GPUs with the uuid GPU1"},
		"a row too few":   {devices, [][]job.Link{{"", ""}}, nil, "does not list every pair of GPUs"},
		"a cell too few":  {devices, [][]job.Link{{"", ""}, {""}}, nil, "does not list every pair of GPUs"},
		"a NIC":           {devices, nil, []job.NIC{{Name: "n", Links: []job.Link{""}}}, `does not list the links of NIC "n" to every GPU`},
		"too many":        {make([]job.Device, MaxGPUs+1), nil, nil, "lists more than 256 GPUs"},
		"too many NICs":   {devices, nil, make([]job.NIC, MaxGPUs+1), "lists more than 256 NICs"},
		"right":           {devices, [][]job.Link{{"", ""}, {"", ""}}, []job.NIC{{}}, ""},
	} {
		bad := sound(c.devices, c.links, c.nics)
		if (bad == nil) != (c.want == "") || bad != nil && (bad.text != c.want || bad.hint == "") {
			t.Errorf("%s: %+v", name, bad)
		}
	}
}

// TestHostileFiles checks that no large text takes much memory or much time.
func TestHostileFiles(t *testing.T) {
	fill := func(size int, head, each string) []byte {
		return []byte(head + strings.Repeat(each, (size-len(head))/len(each)))
	}
	const size = 1 << 18 // large enough to show what is slow
	one := filepath.Join(t.TempDir(), "one.txt")
	if err := os.WriteFile(one, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := Files{Read: ReadFile, Topo: fakeTopo}
	yaml := func(text []byte) error { _, err := YAML("l.yaml", text, files); return err }
	hostfile := func(text []byte) error { _, err := Hostfile("hf", text); return err }
	conf := func(text []byte) error { _, err := Topology("t.conf", text); return err }
	flag := func(text []byte) error { _, err := Hosts(string(text)); return err }
	for name, c := range map[string]struct {
		read func([]byte) error
		text []byte
	}{
		"deep lists":       {yaml, fill(size, "", "[")},
		"deep keys":        {yaml, fill(size, "", "? ")},
		"many items":       {yaml, fill(MaxYAML/4, "hosts: [", "a,")},
		"many hosts":       {yaml, fill(size, "hosts: [", "{name: h},")},
		"large lists":      {yaml, fill(size, "hosts: [", "{name: 'h[1-100000]', address: 'a[1-100000]'},")},
		"much busy":        {yaml, fill(size, "hosts: [{name: h1, gpus: 256, busy: [", "0,")},
		"many topo files":  {yaml, fill(size, "hosts: [", "{name: h, topo: "+one+"},")},
		"many aliases":     {yaml, fill(size, "hosts: [&a {name: 'h[1-100000]', gpus: 2}, ", "*a,")},
		"many unknown":     {hostfile, fill(size, "", "h slts=1\n")},
		"many words":       {hostfile, fill(size, "h ", "slts=1 ")},
		"many equals":      {hostfile, fill(size, "h ", "= ")},
		"many empty lines": {hostfile, fill(size, "", "\n")},
		"many comments":    {hostfile, fill(size, "", "#\n")},
		"many mixtures":    {hostfile, fill(size, "", "h:1\nh slots=1\n")},
		"many slots":       {hostfile, fill(2*size, "", "h\n")},
		"a long name":      {hostfile, fill(size, "", "h")},
		"many switches":    {conf, fill(size, "", "SwitchName=a Switches=s[1-100000]\n")},
		"switches unknown": {conf, fill(size, "SwitchName=a Nodes=h[1-50000]\n", "SwitchName=b Switches=s[1-100000]\n")},
		"many nodes":       {conf, fill(size, "", "SwitchName=a Nodes=h[1-100000]\n")},
		"continued":        {conf, fill(size, "", "a\\\n")},
		"many brackets":    {flag, fill(size, "", "[")},
		"many ranges":      {flag, fill(size, "h[", "1-100000,")},
		"many products":    {flag, fill(size, "h", "[1-2]")},
		"many commas":      {flag, fill(size, "", ",")},
		"many names":       {flag, fill(size, "", "h[1-100000],")},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := c.read(c.text)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("it is taken")
			} else {
				bounded(t, "", string(c.text), List{}, err)
				if len(err.Error()) > 1<<14 {
					t.Errorf("the error is %d bytes long", len(err.Error()))
				}
			}
			if total := after.TotalAlloc - before.TotalAlloc; total > 1<<29 {
				t.Errorf("%d MiB were allocated in all", total>>20)
			} else {
				t.Logf("%d MiB", total>>20)
			}
		})
	}
}
