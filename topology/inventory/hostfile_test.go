package inventory

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// hard returns a host with stated slots, and soft one without.
func hard(name string, slots int) job.Host {
	return job.Host{Name: name, Address: name, Slots: slots, Hard: true}
}

func soft(name string) job.Host { return job.Host{Name: name, Address: name} }

func TestHosts(t *testing.T) {
	for text, want := range map[string][]job.Host{
		"h1":                       {soft("h1")},
		"h1,h2:4":                  {soft("h1"), hard("h2", 4)},
		" h1 , h2:4 ":              {soft("h1"), hard("h2", 4)},
		"10.0.0.1:2,n1.lab.local":  {hard("10.0.0.1", 2), soft("n1.lab.local")},
		"[fd00::1]:2,[FD00:0::2]":  {hard("fd00::1", 2), soft("fd00::2")},
		"[fe80::1%eth0]":           {soft("fe80::1%eth0")},
		"h[1-3,7]:8":               {hard("h1", 8), hard("h2", 8), hard("h3", 8), hard("h7", 8)},
		"a[01-02],b":               {soft("a01"), soft("a02"), soft("b")},
		"node_1,0a,H1,h2":          {soft("node_1"), soft("0a"), soft("H1"), soft("h2")},
		"h1:131072":                {hard("h1", 131072)},
		"bob@h1:2,ann.b@[::1],c@d": {hard("h1", 2), soft("::1"), soft("d")},
	} {
		list, err := Hosts(text)
		if err != nil || list.Kind != Flag || !reflect.DeepEqual(list.Hosts, want) || list.Notes != nil {
			t.Errorf("%q gives %+v, %v", text, list, err)
		}
	}
	list, err := Hosts("bob@h1:2,ann.b@[::1],c@d,e")
	if want := map[string]string{"h1": "bob", "::1": "ann.b", "d": "c"}; err != nil || !reflect.DeepEqual(list.Users, want) {
		t.Errorf("users %v, %v", list.Users, err)
	}
}

func TestHostsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                         `--hosts: has an empty name`,
		"h1,":                      `--hosts: has an empty name`,
		"h1,,h2":                   `--hosts: has an empty name`,
		"h1:0":                     `--hosts: the number of slots of "h1" is "0"`,
		"h1:":                      `--hosts: the number of slots of "h1" is ""`,
		"h1:4x":                    `--hosts: the number of slots of "h1" is "4x"`,
		"h1:+4":                    `--hosts: the number of slots of "h1" is "+4"`,
		"h1:04":                    `--hosts: the number of slots of "h1" is "04"`,
		"h1:131073":                `--hosts: the number of slots of "h1" is "131073"`,
		"h1:99999999999999999999":  `--hosts: the number of slots of "h1" is "99999999999999999999"`,
		"h1:4:2":                   `--hosts: the number of slots of "h1" is "4:2"`,
		"h1,h1":                    `--hosts: names "h1" twice`,
		"h1,h[1-2]":                `--hosts: names "h1" twice`,
		"[::1],[0:0::1]":           `--hosts: names "::1" twice`,
		"4":                        `--hosts: "4" is a number, no host`,
		"10.0.0.256":               `--hosts: "10.0.0.256" is no IPv4 address`,
		"fd00::1":                  `--hosts: the IPv6 address "fd00::1" stands without brackets`,
		"[fd00::g]":                `--hosts: "[fd00::g]" is no IPv6 address in brackets`,
		"[fd00::1%a/b]":            `--hosts: "[fd00::1%a/b]" is no IPv6 address in brackets`,
		"-oProxyCommand=x":         `--hosts: "-oProxyCommand=x" is no host`,
		"-h1":                      `--hosts: "-h1" is no host`,
		"h1;rm":                    `--hosts: "h1;rm" is no host`,
		"h1 h2":                    `--hosts: "h1 h2" is no host`,
		"h..1":                     `--hosts: "h..1" is no host`,
		"../h":                     `--hosts: "../h" is no host`,
		"hé":                       `--hosts: "hé" is no host`,
		strings.Repeat("x", 254):   `--hosts: "` + strings.Repeat("x", 60) + `"... is too long for a host's name`,
		"h1,h2,H1":                 `--hosts: host "H1" is host "h1" in other letters`,
		"@h1":                      `--hosts: "" is no name of a user`,
		"-x@h1":                    `--hosts: "-x" is no name of a user`,
		"h[1-2":                    `--hosts: "h[1-2" has a [ without its ]`,
		"h[3-1]":                   `--hosts: the range "3-1" of "h[3-1]" runs backwards`,
		"h[1-100001]":              `--hosts: the node list "h[1-100001]" names too many`,
		"h[1-999][1-999][1-99999]": `--hosts: the node list "h[1-999][1-999][1-99999]" names too many`,
		"a[1-60000],b[1-60000]":    `--hosts: there are more than 100000 hosts`,
	} {
		list, err := Hosts(text)
		if err == nil || !strings.HasPrefix(err.Error()+"\n", want+"\n") {
			t.Errorf("%q gives %q, want %q", text, err, want)
		}
		bounded(t, "--hosts", text, list, err)
	}
}

func TestHostfile(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		kind  Kind
		want  []job.Host
		users map[string]string
		notes []string
	}{
		"the FAQ of Open MPI": {"# This is an example hostfile.  Comments begin with #\n#\n# The following node is a single processor machine:\nfoo.example.com\n\n" +
			"# The following node is a dual-processor machine:\nbar.example.com slots=2\n\n# Four processors, and we absolutely want to disallow over-subscribing it:\nyow.example.com slots=4 max-slots=4\n",
			OpenMPI, []job.Host{soft("foo.example.com"), hard("bar.example.com", 2), hard("yow.example.com", 4)}, nil, nil},
		"hydra's readme": {"   # This is a sample host file\n   donner:2     # The first 2 procs are scheduled to run here\n   foo:3        # The next 3 procs run on this host\n   shakey:2     # The last 2 procs run on this host\n",
			MPICH, []job.Host{hard("donner", 2), hard("foo", 3), hard("shakey", 2)}, nil, nil},
		"DeepSpeed":                   {"worker-1 slots=4\nworker-2 slots=4\n", OpenMPI, []job.Host{hard("worker-1", 4), hard("worker-2", 4)}, nil, nil},
		"MVAPICH":                     {"n1:4:mlx5_0\nn2:2:mlx5_1\n", MPICH, []job.Host{hard("n1", 4), hard("n2", 2)}, nil, []string{"hf:1: the interface is ignored: gangrun chooses interfaces by itself"}},
		"plain":                       {"h1\n\n  h2 # x\nh3", Plain, []job.Host{soft("h1"), soft("h2"), soft("h3")}, nil, nil},
		"CRLF and a byte order mark":  {"\ufeffh1\r\nh2 \r\n", Plain, []job.Host{soft("h1"), soft("h2")}, nil, nil},
		"a copy of a node file":       {"h1\nh1\nh2\n", Nodefile, []job.Host{hard("h1", 2), hard("h2", 1)}, nil, []string{"hf:2 names a host again, so every line is taken for one slot"}},
		"Open MPI, lines add up":      {"h1 slots=3\nh2\nh1\nh2\nh3\n", OpenMPI, []job.Host{hard("h1", 4), hard("h2", 2), soft("h3")}, nil, nil},
		"Open MPI, max_slots alone":   {"h1 max_slots=3\n", OpenMPI, []job.Host{hard("h1", 3)}, nil, nil},
		"Open MPI, max_slots first":   {"h1 max_slots=3 slots=2\n", OpenMPI, []job.Host{hard("h1", 2)}, nil, []string{"hf:1: max_slots changes nothing where slots are stated: gangrun starts no more ranks on a host than it has slots"}},
		"Open MPI, blanks and //":     {"h1 slots = 2 // the old one\n// nothing\nh2 cpu=3\nh3 count =4", OpenMPI, []job.Host{hard("h1", 2), hard("h2", 3), hard("h3", 4)}, nil, nil},
		"Open MPI, users":             {"bob@h1 slots=2\nh2 username=ann\nh3\n", OpenMPI, []job.Host{hard("h1", 2), soft("h2"), soft("h3")}, map[string]string{"h1": "bob", "h2": "ann"}, nil},
		"only users":                  {"bob@h1\nbob@h2\n", OpenMPI, []job.Host{soft("h1"), soft("h2")}, map[string]string{"h1": "bob", "h2": "bob"}, nil},
		"Open MPI, IPv6":              {"[fd00::1] slots=2\n", OpenMPI, []job.Host{hard("fd00::1", 2)}, nil, nil},
		"MPICH, lines add up":         {"h1:2\nh2\nh1:3\nh3\nh3\n", MPICH, []job.Host{hard("h1", 5), soft("h2"), hard("h3", 2)}, nil, nil},
		"MPICH, words":                {"h1:2 user=bob binding=user:0,1 ifname=ib0\nh2:1 binding=rr\n", MPICH, []job.Host{hard("h1", 2), hard("h2", 1)}, map[string]string{"h1": "bob"}, []string{"hf:1: binding= is ignored: gangrun binds ranks by where their GPUs are", "hf:1: the interface is ignored: gangrun chooses interfaces by itself"}},
		"MPICH, IPv6 and user@":       {"bob@[::1]:2\n", MPICH, []job.Host{hard("::1", 2)}, map[string]string{"::1": "bob"}, nil},
		"the most slots, by two":      {"h1:131071\nh1:1\n", MPICH, []job.Host{hard("h1", 131072)}, nil, nil},
		"user= without numbers":       {"h1 user=bob\n", MPICH, []job.Host{soft("h1")}, map[string]string{"h1": "bob"}, nil},
		"a host that is called rank":  {"rank slots=2\n", OpenMPI, []job.Host{hard("rank", 2)}, nil, nil},
		"a host that is called hosts": {"hosts\n", Plain, []job.Host{soft("hosts")}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := Hostfile("hf", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if want := (List{c.kind, c.want, c.users, c.notes}); !reflect.DeepEqual(list, want) {
				t.Errorf("got  %+v\nwant %+v", list, want)
			}
		})
	}
}

func TestHostfileRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      `hf: names no host`,
		"# h1\n":                                `hf: names no host`,
		"h1 slots=4\n\nh2:2\n":                  `hf:3: "h2:2" is written as for MPICH, but line 1 has "slots=" as for Open MPI`,
		"h1 user=bob\nh2\nh2 slots=4\n":         `hf:3: "slots=" is written as for Open MPI, but line 1 has "user=" as for MPICH`,
		"h1:2 slots=4\n":                        `hf:1: "slots=" is written as for Open MPI, but line 1 has "h1:2" as for MPICH`,
		"h1 slot=4\n":                           `hf:1: unknown word "slot", did you mean "slots"?`,
		"h1 slots=4 max_slot=4\n":               `hf:1: unknown word "max_slot", did you mean "max_slots"?`,
		"h1:4 bindng=rr\n":                      `hf:1: unknown word "bindng", did you mean "binding"?`,
		"h1 4\n":                                `hf:1: unknown word "4"`,
		"h1 h2\n":                               `hf:1: unknown word "h2"`,
		"h1 slots\n":                            `hf:1: slots is ""`,
		"h1 slots=0\n":                          `hf:1: slots is "0"`,
		"h1 slots=-1\n":                         `hf:1: slots is "-1"`,
		"h1 slots=131073\n":                     `hf:1: slots is "131073"`,
		"h1 slots=2 slots=2\n":                  `hf:1: slots are stated twice`,
		"h1 slots=2\nh1 slots=3\n":              `hf:2: the slots of "h1" are stated again; it stands on line 1`,
		"h1\nh1 slots=3\n":                      `hf:2: the slots of "h1" are stated again; it stands on line 1`,
		"h1 slots=2 max_slots=1\n":              `hf:1: host "h1" has 2 slots, but max_slots=1`,
		"h1 slots=2 max_slots=2\nh1\n":          `hf:2: host "h1" has 3 slots, but max_slots=2`,
		"h1 slots=2\nH1 slots=2\n":              `hf:2: host "H1" is host "h1" on line 1 in other letters`,
		"h1:2\nh2:2\nH2:2\n":                    `hf:3: host "H2" is host "h2" on line 2 in other letters`,
		"node1\nNode1\nnode1\n":                 `hf:2: host "Node1" is host "node1" on line 1 in other letters`,
		"^h1 slots=2\n":                         `hf:1: "^h1" leaves a host out, which is not supported`,
		"@h1 slots=2\n":                         `hf:1: "@h1" has no user before the @`,
		"a@h1 slots=2 username=b\n":             `hf:1: the users "a" and "b" are named`,
		"a@h1 slots=2\nb@h1\n":                  `hf:2: host "h1" is given the users "a" and "b"`,
		"h1:131072\nh1\n":                       `hf:2: the slots of "h1" add up to 131073`,
		"h1:4:-x\nh2:4:a/b\n":                   `hf:2: "a/b" is no name of an interface`,
		"h[1-4] slots=2\n":                      `hf:1: "h[1-4]" is no host, but a node list`,
		"fd00::1\n":                             `hf:1: the IPv6 address "fd00::1" stands without brackets`,
		"+n0 slots=1\n":                         `hf:1: "+n0" is no host`,
		"rank 0=h1 slot=1:0-3\n":                `hf:1: "rank" begins no line of a hostfile`,
		"# lab\nhosts:\n  - name: h1\n":         `hf:2: "hosts:" begins no line of a hostfile`,
		"- name: h1\n":                          `hf:1: "-" begins no line of a hostfile`,
		"h1\x00\n":                              `hf:1: the control character U+0000 cannot stand here`,
		"h1\nh\xff\n":                           `hf:2: the byte 0xff here is no UTF-8`,
		"\xff\xfeh\x001\x00":                    `hf:1: is text in UTF-16, not in UTF-8`,
		"h1\rh2\r":                              `hf:1: the control character U+000D cannot stand here`,
		"h1\n4\n10.0.1\n":                       "hf:2: \"4\" is a number, no host\nhf:3: \"10.0.1\" is no IPv4 address",
		strings.Repeat("h/\n", 30):              strings.Repeat("#", 20) + `hf: reading stopped after 20 errors`,
		"h1\n" + strings.Repeat("#", MaxSize):   `hf: is too large for a list of hosts`,
		manyHosts(MaxHosts + 1):                 `hf:100001: there are more than 100000 hosts`,
		strings.Repeat("h1\n", MaxSlots) + "h1": `hf:131073: the slots of "h1" add up to 131073`,
	} {
		list, err := Hostfile("hf", []byte(text))
		shown := text[:min(len(text), 60)]
		if err == nil {
			t.Errorf("%q is taken", shown)
			continue
		}
		got := err.Error()
		if strings.HasPrefix(want, "#") {
			lines := strings.Split(got, "\n")
			got = strings.Repeat("#", len(lines)-1) + lines[len(lines)-1]
		}
		if got != want {
			t.Errorf("%q gives\n%s\nwant\n%s", shown, got, want)
		}
		bounded(t, "hf", text, list, err)
	}
}

func manyHosts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "h%d\n", i)
	}
	return b.String()
}

// TestManyHosts checks that a long list is read in every form that Hostfile and Hosts know.
func TestManyHosts(t *testing.T) {
	var list List
	for i := range MaxHosts / 10 {
		list.Hosts = append(list.Hosts, hard(fmt.Sprintf("node%06d.cluster", i), 1+i%3))
	}
	for _, kind := range []Kind{Flag, OpenMPI, MPICH, Nodefile} {
		text := write(list, kind)
		got, err := Hostfile("hf", []byte(text))
		if kind == Flag {
			got, err = Hosts(text)
		}
		if err != nil || got.Kind != kind || !reflect.DeepEqual(got.Hosts, list.Hosts) {
			t.Errorf("%s: %d hosts, %v", kind, len(got.Hosts), err)
		}
	}
}
