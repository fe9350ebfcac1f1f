package openmpi

import (
	"slices"
	"strconv"
	"strings"
)

// Plan describes a gang that mpirun is to start.
type Plan struct {
	Nodes     []string // names of the hosts for mpirun; the first is this host
	Node      []int    // for each rank, the index of its host in Nodes
	Apps      []int    // for each program, how many ranks it has; nil means one program
	Cores     int      // number of cores of this host; 0 means unknown
	Interface string   // network interface, such as "lo"; "" lets Open MPI choose
	Agent     []string // argv of the rsh agent, without white space, ':' and quotes
	Shim      []string // argv that mpirun starts as each rank
	Tmpdir    string   // directory for mpirun's session directories; "" lets Open MPI choose
	Shm       string   // directory for shared memory segments on this host; "" lets Open MPI choose
}

// Command returns the argv of mpirun, for Open MPI 4 or 5. env has variables, as NAME=VALUE, that the caller
// adds to userEnv, the user's environment. The caller then executes Installation.Mpirun with argv and these
// variables. argv[0] is "mpirun" without a directory, because mpirun turns on --prefix if argv[0] is a path.
//
// The user's variables take precedence, except over those that place and start ranks. If there are several
// nodes, Command does not use Shm, because mpirun passes its environment to the ranks of all nodes. The process
// that starts a rank must then set the variables that RankEnv returns.
func (p Plan) Command(in Installation, userEnv []string) (argv, env []string) {
	argv = []string{"mpirun"}
	sequential := !p.plain()
	// All releases of Open MPI 5 accept the qualifiers of a mapping policy only on the command
	// line.
	if in.Major >= 5 {
		policy := "slot"
		if sequential {
			policy = "seq"
		}
		argv = append(argv, "--map-by", policy+":OVERSUBSCRIBE")
	}
	apps := p.Apps
	if len(apps) == 0 {
		apps = []int{len(p.Node)}
	}
	first := 0
	for i, ranks := range apps {
		if i > 0 {
			argv = append(argv, ":")
		}
		argv = append(argv, "--host", p.hosts(p.Node[first:first+ranks], sequential), "-n", strconv.Itoa(ranks))
		argv = append(argv, p.Shim...)
		first += ranks
	}
	return argv, p.environment(sequential, userEnv)
}

// plain reports whether the ranks are in mpirun's default order, which fills the slots of one node after the other.
func (p Plan) plain() bool { return len(p.Apps) <= 1 && slices.IsSorted(p.Node) }

// hosts returns the list of nodes for some ranks. If sequential is true, the list has an entry for each rank.
// Otherwise, it has an entry for each node, with the number of slots.
func (p Plan) hosts(node []int, sequential bool) string {
	var names []string
	for i := 0; i < len(node); {
		end := i + 1
		for !sequential && end < len(node) && node[end] == node[i] {
			end++
		}
		name := p.Nodes[node[i]]
		if !sequential {
			name += ":" + strconv.Itoa(end-i)
		}
		names, i = append(names, name), end
	}
	return strings.Join(names, ",")
}

// environment returns the settings of mpirun that are environment variables.
func (p Plan) environment(sequential bool, userEnv []string) []string {
	rmaps := "round_robin"
	if sequential {
		rmaps = "seq"
	}
	agent := strings.Join(p.Agent, " ")
	var env []string
	set := func(entries ...string) { env = append(env, entries...) }
	unless := func(entries ...string) { // sets entries if the user has set none of them
		if !slices.ContainsFunc(entries, func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return isSet(userEnv, name)
		}) {
			env = append(env, entries...)
		}
	}
	set( // how mpirun starts the daemons
		"OMPI_MCA_plm=rsh", "PRTE_MCA_plm=ssh",
		"OMPI_MCA_plm_rsh_agent="+agent, "PRTE_MCA_plm_ssh_agent="+agent,
		"OMPI_MCA_plm_rsh_no_tree_spawn=1", "PRTE_MCA_plm_ssh_no_tree_spawn=1",
		"OMPI_MCA_plm_rsh_disable_qrsh=1", "PRTE_MCA_plm_ssh_disable_qrsh=1",
		"OMPI_MCA_plm_rsh_disable_llspawn=1", "PRTE_MCA_plm_ssh_disable_llspawn=1",
		"OMPI_MCA_orte_leave_session_attached=1", "PRTE_MCA_prte_leave_session_attached=1",
	)
	set( // where the ranks run; mpirun ignores the allocation of a batch system
		"OMPI_MCA_ras=^slurm,tm,lsf,gridengine,alps", "PRTE_MCA_ras=^slurm,pbs,tm,lsf,gridengine,flux",
		"OMPI_MCA_rmaps="+rmaps, "OMPI_MCA_rmaps_base_mapping_policy=slot", "OMPI_MCA_rmaps_base_oversubscribe=1",
		"OMPI_MCA_orte_default_hostfile=none", "PRTE_MCA_prte_default_hostfile=none",
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"PRTE_ALLOW_RUN_AS_ROOT=1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
	)
	// A daemon that has not started yet cannot receive a signal. If mpirun passed on SIGCONT to such a daemon, mpirun
	// would end.
	unless("OMPI_MCA_ess_base_forward_signals=none", "PRTE_MCA_ess_base_forward_signals=none")
	unless("OMPI_MCA_hwloc_base_binding_policy=none", "PRTE_MCA_hwloc_default_binding_policy=none")
	if p.crowded() {
		unless("OMPI_MCA_mpi_yield_when_idle=1")
	}
	if p.Interface != "" {
		if !isSet(userEnv, "OMPI_MCA_oob_tcp_if_exclude") && !isSet(userEnv, "PRTE_MCA_oob_tcp_if_exclude") &&
			!isSet(userEnv, "PRTE_MCA_prte_if_exclude") {
			unless("OMPI_MCA_oob_tcp_if_include="+p.Interface, "PRTE_MCA_oob_tcp_if_include="+p.Interface,
				"PRTE_MCA_prte_if_include="+p.Interface)
		}
		if !isSet(userEnv, "OMPI_MCA_btl_tcp_if_exclude") {
			unless("OMPI_MCA_btl_tcp_if_include=" + p.Interface)
		}
	}
	if p.Tmpdir != "" {
		unless("OMPI_MCA_orte_tmpdir_base="+p.Tmpdir, "PRTE_MCA_prte_tmpdir_base="+p.Tmpdir)
	}
	if len(p.Nodes) == 1 && p.Shm != "" {
		for _, entry := range RankEnv(p.Shm) {
			unless(entry)
		}
	}
	return env
}

// crowded reports whether a node has more ranks than this host has cores.
func (p Plan) crowded() bool {
	ranks := make([]int, len(p.Nodes))
	for _, node := range p.Node {
		ranks[node]++
	}
	return p.Cores > 0 && slices.Max(append(ranks, 0)) > p.Cores
}

// isSet reports whether env has a name, even with an empty value.
func isSet(env []string, name string) bool {
	return slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}
