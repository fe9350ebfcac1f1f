package launcher

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

// rendezvous is where the ranks of an attempt meet.
type rendezvous struct {
	address string
	port    int
}

// gangEnv is what every rank of an attempt is told, as NAME=VALUE.
func gangEnv(a job.Attempt, at rendezvous) []string {
	env := []string{
		"WORLD_SIZE=" + strconv.Itoa(len(a.Placement.Ranks)),
		"MASTER_ADDR=" + at.address,
		"MASTER_PORT=" + strconv.Itoa(at.port),
		"GROUP_WORLD_SIZE=" + strconv.Itoa(len(a.Placement.Hosts)),
		"ROLE_NAME=default",
		"ROLE_WORLD_SIZE=" + strconv.Itoa(len(a.Placement.Ranks)),
		"TORCHELASTIC_RUN_ID=" + a.Run,
		"TORCHELASTIC_RESTART_COUNT=" + strconv.Itoa(max(a.Number-1, 0)),
		"TORCHELASTIC_MAX_RESTARTS=" + strconv.Itoa(a.Retries),
		// With True, rank 0 would look for a store of the launcher's at MASTER_PORT
		// instead of making one there.
		"TORCHELASTIC_USE_AGENT_STORE=False",
		"GANGRUN_RUN=" + a.Run,
		"GANGRUN_ATTEMPT=" + strconv.Itoa(a.Number),
		"GANGRUN_CHECKPOINT_DIR=" + a.CheckpointDir,
		"GANGRUN_RESUME_FROM=" + a.ResumeFrom,
	}
	if at.address == loopback {
		// Gloo looks its own host name up, which need not resolve; ranks that all
		// are on this machine meet on its loopback interface.
		env = append(env, "GLOO_SOCKET_IFNAME=lo")
	}
	return env
}

const loopback = "127.0.0.1"

// rankEnv is what one rank is told, beside its GPUs. What the user set comes last and wins.
func rankEnv(a job.Attempt, r job.Rank) []string {
	env := []string{
		"RANK=" + strconv.Itoa(r.Rank),
		"LOCAL_RANK=" + strconv.Itoa(r.LocalRank),
		"LOCAL_WORLD_SIZE=" + strconv.Itoa(r.LocalSize),
		"NODE_RANK=" + strconv.Itoa(r.Node),
		"GROUP_RANK=" + strconv.Itoa(r.Node),
		"ROLE_RANK=" + strconv.Itoa(r.Rank),
		"GANGRUN_RANK=" + strconv.Itoa(r.Rank),
	}
	env = append(env, compatOf(a, r)...)
	app, _ := a.App(r.Rank)
	for _, set := range []map[string]string{a.Env, app.Env} {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			env = append(env, name+"="+set[name])
		}
	}
	return env
}

// rankHints are variables that a rank has where nothing else sets them: neither the
// user nor the environment that it inherits. Spread says that the gang is on several
// machines.
func rankHints(a job.Attempt, r job.Rank, spread bool) []string {
	// As torchrun sets it. NCCL_ASYNC_ERROR_HANDLING, its name up to PyTorch 2.1, is
	// left out: later ones warn of it.
	own := append(threadsOf(a, r, spread), "TORCH_NCCL_ASYNC_ERROR_HANDLING=1")
	return slices.Concat(a.Hints, own, interfacesOf(a, r))
}

// interfacesOf are variables that help the ranks of a gang on several hosts to send
// through the right interfaces: over the network that the gang meets on, and for
// GPUs through the NICs that are near to them.
func interfacesOf(a job.Attempt, r job.Rank) (hints []string) {
	if len(a.Placement.Hosts) < 2 {
		return nil
	}
	h := a.Placement.Hosts[r.Node]
	if h.Interface != "" {
		hints = append(hints, "GLOO_SOCKET_IFNAME="+h.Interface, "NCCL_SOCKET_IFNAME="+h.Interface, "TP_SOCKET_IFNAME="+h.Interface)
		if len(h.NICs) == 0 { // else UCX finds what is faster
			hints = append(hints, "UCX_NET_DEVICES="+h.Interface)
		}
	}
	var ports, names []string
	for _, name := range topology.NICs(h, r.Devices) {
		if strings.HasPrefix(name, "NIC") { // a matrix without a legend: not its name
			continue
		}
		names = append(names, name)
		ports = append(ports, name+":1")
	}
	if len(r.Devices) > 0 && len(names) > 0 {
		hints = append(hints, "NCCL_IB_HCA="+strings.Join(names, ","), "UCX_NET_DEVICES="+strings.Join(ports, ","))
	}
	return hints
}

// rankArgs is the command of one rank, with its templates expanded.
func rankArgs(a job.Attempt, r job.Rank) ([]string, error) {
	app, _ := a.App(r.Rank)
	return job.Expand(app.Command, job.Fields{
		Rank: r.Rank, LocalRank: r.LocalRank, Host: r.Host, CheckpointDir: a.CheckpointDir, ResumeFrom: a.ResumeFrom,
	})
}
