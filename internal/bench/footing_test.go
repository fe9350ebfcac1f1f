package main

import "testing"

func TestAutogroups(t *testing.T) {
	for _, test := range []struct {
		name, enabled, cgroup string
		want                  bool
	}{
		{"version 1, root", "1\n", "3:cpuset:/\n2:cpuacct:/a\n1:cpu:/\n0::/gangrun\n", true},
		{"version 1, a group", "1\n", "0::/\n4:cpu,cpuacct:/bench\n", false},
		{"version 2, root", "1\n", "0::/\n", true},
		{"version 2, a group", "1\n", "0::/user.slice/a:b\n", false},
		{"off", "0\n", "0::/\n", false},
		{"not in this kernel", "", "0::/\n", false},
		{"no cgroups", "1\n", "", true},
	} {
		if got := autogroups(test.enabled, test.cgroup); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
