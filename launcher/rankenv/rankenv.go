// Package rankenv decides the environment variables and the arguments of each rank. It has no
// side effects.
package rankenv

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/template"
	"github.com/gangrun/gangrun/topology"
)

// Rendezvous is the address at which the ranks of an attempt meet: MASTER_ADDR and
// MASTER_PORT.
type Rendezvous struct {
	Address string
	Port    int
}

// Gang returns the variables that all ranks of an attempt have in common, as NAME=VALUE.
func Gang(a job.Attempt, at Rendezvous) []string {
	env := []string{
		"WORLD_SIZE=" + strconv.Itoa(len(a.Placement.Ranks)),
		"MASTER_ADDR=" + at.Address,
		"MASTER_PORT=" + strconv.Itoa(at.Port),
		"GROUP_WORLD_SIZE=" + strconv.Itoa(len(a.Placement.Hosts)),
		"ROLE_NAME=default",
		"ROLE_WORLD_SIZE=" + strconv.Itoa(len(a.Placement.Ranks)),
		"TORCHELASTIC_RUN_ID=" + a.Run,
		"TORCHELASTIC_RESTART_COUNT=" + strconv.Itoa(max(a.Number-1, 0)),
		"TORCHELASTIC_MAX_RESTARTS=" + strconv.Itoa(a.Retries),
		// With True, rank 0 would expect that the launcher has a store at MASTER_PORT. It would not make a store there.
		"TORCHELASTIC_USE_AGENT_STORE=False",
		"GANGRUN_RUN=" + a.Run,
		"GANGRUN_ATTEMPT=" + strconv.Itoa(a.Number),
		"GANGRUN_CHECKPOINT_DIR=" + a.CheckpointDir,
		"GANGRUN_RESUME_FROM=" + a.ResumeFrom,
		"GANGRUN_STOP_FILE=" + a.StopFile,
	}
	if at.Address == Loopback {
		// Gloo resolves the host's own name, which may fail. If all ranks are on this machine, they meet on the
		// loopback interface.
		env = append(env, "GLOO_SOCKET_IFNAME=lo")
	}
	return env
}

// Loopback is the address of the rendezvous if all ranks are on this machine.
const Loopback = "127.0.0.1"

// Rank returns the variables of one rank, except those that name its GPUs. The user's variables
// come last and take precedence.
func Rank(a job.Attempt, r job.Rank) []string {
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

// Hints returns the variables of a rank that have the lowest precedence. The caller sets such a variable only
// if neither the user nor the inherited environment sets it. spread is true if the gang is on several machines.
func Hints(a job.Attempt, r job.Rank, spread bool) []string {
	// torchrun sets this variable, too. Its name up to PyTorch 2.1, NCCL_ASYNC_ERROR_HANDLING, is not set, because
	// later versions warn about that name.
	own := append(threadsOf(a, r, spread), "TORCH_NCCL_ASYNC_ERROR_HANDLING=1")
	return slices.Concat(a.Hints, own, interfacesOf(a, r))
}

// interfacesOf returns variables that make the ranks of a gang on several hosts use the right interfaces. These are the
// interface of the gang's network and, for GPUs, the nearest NICs.
func interfacesOf(a job.Attempt, r job.Rank) (hints []string) {
	if len(a.Placement.Hosts) < 2 {
		return nil
	}
	h := a.Placement.Hosts[r.Node]
	if h.Interface != "" {
		hints = append(hints, "GLOO_SOCKET_IFNAME="+h.Interface, "NCCL_SOCKET_IFNAME="+h.Interface, "TP_SOCKET_IFNAME="+h.Interface)
		if len(h.NICs) == 0 { // with RDMA NICs, UCX itself finds a faster interface
			hints = append(hints, "UCX_NET_DEVICES="+h.Interface)
		}
	}
	var ports, names []string
	for _, name := range topology.NICs(h, r.Devices) {
		if strings.HasPrefix(name, "NIC") { // nvidia-smi printed no legend, so this is not the name of a NIC
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

// Args returns the command line of one rank, with its templates expanded.
func Args(a job.Attempt, r job.Rank) ([]string, error) {
	app, _ := a.App(r.Rank)
	return template.Expand(app.Command, template.Fields{
		Rank: r.Rank, LocalRank: r.LocalRank, Host: r.Host, CheckpointDir: a.CheckpointDir, ResumeFrom: a.ResumeFrom,
	})
}
