package kernellog

import "testing"

func TestMemoryGroup(t *testing.T) {
	for text, want := range map[string]group{
		"": "", "0::/user.slice/a.scope\n": "/user.slice/a.scope",
		"9:cpu,cpuacct:/x\n8:memory:/slurm/job_3\n0::/\n": "/slurm/job_3", "1:name=systemd:/\n0::/\n": "/",
	} {
		if got := memoryGroup(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestForeign(t *testing.T) {
	const kill = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg="
	for _, c := range []struct {
		own  group
		text string
		want bool
	}{
		{"/", kill + "/gangrun/gangrun-e517,task_memcg=/gangrun/gangrun-e517,task=x,pid=7,uid=0", true},
		{"/", kill + "/,task_memcg=/,task=x,pid=7,uid=0", false},
		{"/slurm/job_3/step_0", kill + "/slurm/job_3,task_memcg=/slurm/job_3/step_0,task=x,pid=7,uid=0", false},
		{"/slurm/job_3", kill + "/slurm/job_3/task_1,task_memcg=/slurm/job_3/task_1,task=x,pid=7,uid=0", false},
		{"/slurm/job_3", kill + "/slurm/job_30,task_memcg=/slurm/job_30,task=x,pid=7,uid=0", true},
		{"/", kill + "/other,task_memcg=/other,task=x,pid=8,uid=0", false},
		{"", kill + "/other,task_memcg=/other,task=x,pid=7,uid=0", false},
		{"/slurm/job_3", "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/a,task=x,pid=7,uid=0", false},
		{"/slurm/job_3", "Out of memory: Killed process 7 (x)", false},
	} {
		if got := c.own.foreign(c.text, []int{8}); got != c.want {
			t.Errorf("in %q %q: got %v", c.own, c.text, got)
		}
	}
}

func TestFilter(t *testing.T) {
	const kill = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg="
	f := filter{group: "/"}
	for _, c := range []struct {
		text       string
		none, want bool
	}{
		{kill + "/other,task_memcg=/other,task=dd,pid=7,uid=0", false, true},
		{kill + "/,task_memcg=/,task=dd,pid=10,uid=0", true, false},
		{"Memory cgroup out of memory: Killed process 7 (dd) total-vm:3292kB", false, true},
		{"Memory cgroup out of memory: Killed process 10 (dd) total-vm:3292kB", true, false},
		{"Memory cgroup out of memory: Killed process 8 (python3) total-vm:3292kB", false, false},
		{"Memory cgroup out of memory: Killed process 8 (python3) total-vm:3292kB", true, true},
		{"Memory cgroup out of memory: Killed process 11 (rank) total-vm:3292kB", true, false},
		{"Out of memory: Killed process 9 (x)", true, false},
	} {
		if got := f.drops(c.text, []int{11}, c.none); got != c.want {
			t.Errorf("%q: got %v", c.text, got)
		}
	}
}
