package openmpi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/launcher/openmpi"
)

func TestCommandArgv(t *testing.T) {
	tests := []struct {
		name  string
		node  []int
		apps  []int
		major int
		want  string
	}{
		{"in order", []int{0, 0, 0, 1}, nil, 4, "mpirun --host localhost:3,198.18.0.2:1 -n 4 gangrun shim"},
		{"one program told", []int{0, 1}, []int{2}, 4, "mpirun --host localhost:1,198.18.0.2:1 -n 2 gangrun shim"},
		{"mixed", []int{0, 1, 0}, nil, 4, "mpirun --host localhost,198.18.0.2,localhost -n 3 gangrun shim"},
		{"programs", []int{0, 0, 1}, []int{1, 2}, 4, "mpirun --host localhost -n 1 gangrun shim : --host localhost,198.18.0.2 -n 2 gangrun shim"},
		{"in order, 5", []int{0, 1}, nil, 5, "mpirun --map-by slot:OVERSUBSCRIBE --host localhost:1,198.18.0.2:1 -n 2 gangrun shim"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plan := openmpi.Plan{Nodes: []string{"localhost", "198.18.0.2"}, Node: test.node, Apps: test.apps, Shim: []string{"gangrun", "shim"}}
			argv, _ := plan.Command(openmpi.Installation{Major: test.major}, nil)
			if got := strings.Join(argv, " "); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

func TestCommandEnvironment(t *testing.T) {
	one := openmpi.Plan{Nodes: []string{"localhost"}, Node: []int{0, 0, 0}, Cores: 2, Interface: "lo", Agent: []string{"/bin/gangrun", "rsh"}, Tmpdir: "/t", Shm: "/s"}
	two := one
	two.Nodes, two.Node = []string{"localhost", "198.18.0.2"}, []int{0, 0, 1}
	tests := []struct {
		name string
		plan openmpi.Plan
		user string
		has  string // entries that the environment must have
		not  string // names that it must not have
	}{
		{"essential", one, "", "OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_no_tree_spawn=1 PRTE_MCA_plm_ssh_no_tree_spawn=1 OMPI_MCA_orte_leave_session_attached=1 " +
			"OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1", ""},
		{"essential, against the user", one, "OMPI_MCA_plm=slurm OMPI_MCA_rmaps=ppr", "OMPI_MCA_plm=rsh OMPI_MCA_rmaps=round_robin", ""},
		{"defaults", one, "", "OMPI_MCA_ess_base_forward_signals=none PRTE_MCA_ess_base_forward_signals=none OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 " +
			"OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo PRTE_MCA_prte_if_include=lo OMPI_MCA_orte_tmpdir_base=/t PRTE_MCA_prte_tmpdir_base=/t " +
			"OMPI_MCA_btl_vader_backing_directory=/s OMPI_MCA_btl_sm_backing_directory=/s", ""},
		{"the user's binding and yield", one, "OMPI_MCA_hwloc_base_binding_policy=core OMPI_MCA_mpi_yield_when_idle=0", "",
			"OMPI_MCA_hwloc_base_binding_policy PRTE_MCA_hwloc_default_binding_policy OMPI_MCA_mpi_yield_when_idle"},
		{"the user's interface for messages", one, "OMPI_MCA_btl_tcp_if_include=eth0", "OMPI_MCA_oob_tcp_if_include=lo", "OMPI_MCA_btl_tcp_if_include"},
		{"the user's excluded interfaces", one, "OMPI_MCA_btl_tcp_if_exclude=eth0 OMPI_MCA_oob_tcp_if_exclude=eth0", "",
			"OMPI_MCA_oob_tcp_if_include OMPI_MCA_btl_tcp_if_include PRTE_MCA_prte_if_include"},
		{"the user's directories", one, "OMPI_MCA_orte_tmpdir_base=/x OMPI_MCA_btl_vader_backing_directory=/y", "OMPI_MCA_btl_sm_backing_directory=/s",
			"OMPI_MCA_orte_tmpdir_base OMPI_MCA_btl_vader_backing_directory"},
		{"two nodes: as many ranks as cores, each rank its own segments", two, "", "",
			"OMPI_MCA_mpi_yield_when_idle OMPI_MCA_btl_vader_backing_directory OMPI_MCA_btl_sm_backing_directory"},
		{"nothing known", openmpi.Plan{Nodes: []string{"localhost"}, Node: []int{0, 0, 0}}, "", "", "OMPI_MCA_mpi_yield_when_idle OMPI_MCA_oob_tcp_if_include " +
			"OMPI_MCA_btl_tcp_if_include OMPI_MCA_orte_tmpdir_base OMPI_MCA_btl_vader_backing_directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, env := test.plan.Command(openmpi.Installation{Major: 4}, strings.Fields(test.user))
			for _, want := range strings.Fields(test.has) {
				if !slices.Contains(env, want) {
					t.Errorf("%q lacks %q", env, want)
				}
			}
			for _, name := range strings.Fields(test.not) {
				if slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
					t.Errorf("%q has %q", env, name)
				}
			}
		})
	}
	_, env := one.Command(openmpi.Installation{}, nil)
	for _, want := range []string{"OMPI_MCA_plm_rsh_agent=/bin/gangrun rsh", "PRTE_MCA_plm_ssh_agent=/bin/gangrun rsh"} {
		if !slices.Contains(env, want) {
			t.Errorf("%q lacks %q", env, want)
		}
	}
}
