package layers

import "slices"

// module is the beginning of the import paths of gangrun's packages.
const module = "github.com/gangrun/gangrun"

// room is a row of the table. It says what the packages at paths must not import. Paths are relative to the module. A
// path that ends in "/..." includes all packages below it. Other paths are exact. The rules do not apply to test
// files.
type room struct {
	paths []string
	// ours says which packages of gangrun may be imported.
	ours rule
	// not has patterns of packages outside gangrun that must not be imported.
	not []string
	// stdOnly is true if, of the packages outside gangrun, only the standard library may be imported.
	stdOnly bool
	// noClock is true if the packages must not read the clock or wait. They get times as values.
	noClock bool
	// noGo is true if there must be no Go package.
	noGo bool
}

// rule says which packages of gangrun a room may import: only those that match the patterns or, if closed is false,
// all that do not match them. See held for patterns. A room must also not reach a forbidden package through another
// room.
type rule struct {
	closed   bool
	patterns []string
}

// only returns the rule of a room that may import only the packages of gangrun that match the patterns.
func only(patterns ...string) rule { return rule{closed: true, patterns: patterns} }

// leaves are small packages without state. Most rooms may import them.
var leaves = []string{"internal/failure", "internal/limits", "internal/procfs", "internal/runclock", "internal/text", "internal/suggest", "internal/pattern"}

// withLeaves is like only, but also allows the leaves.
func withLeaves(patterns ...string) rule { return only(slices.Concat(leaves, patterns)...) }

// allBut returns the rule of a room that may import all packages of gangrun except those that match the patterns.
func allBut(patterns ...string) rule { return rule{patterns: patterns} }

// world has the packages that a pure room must not import, because they use files, processes or the network.
var world = []string{"os/...", "io/ioutil", "net/...", "!net/netip", "!net/url", "syscall/...", "golang.org/x/sys/..."}

// rooms is the table "Rooms" of docs/design.md. It may have rooms that do not exist yet, but every existing package
// must have a row.
var rooms = []room{
	{paths: []string{"internal/job"}, ours: only(), stdOnly: true},
	{paths: []string{"internal/jobcheck"}, ours: only("internal/job", "internal/template", "internal/text"), stdOnly: true, not: world, noClock: true},
	{paths: []string{"internal/template"}, ours: only(), stdOnly: true, not: world, noClock: true},
	{paths: []string{"internal/exact"}, ours: only(), stdOnly: true},
	{paths: []string{"internal/faulthandler"}, ours: withLeaves("internal/job")},
	{paths: []string{"internal/jobfile"}, ours: withLeaves("internal/job", "internal/jobcheck", "internal/template", "internal/yamldoc")},
	{paths: []string{"internal/yamldoc"}, ours: withLeaves()},
	{paths: []string{"internal/atomicfile"}, ours: only("internal/job")},
	{paths: []string{"internal/safefile"}, ours: only()},
	{paths: []string{"internal/limits"}, ours: only("internal/procfs")},
	{paths: []string{"internal/failure"}, ours: only("internal/limits", "internal/procfs")},
	{paths: []string{"internal/procfs", "internal/runclock", "internal/text", "internal/suggest", "internal/pattern"}, ours: only()},
	{paths: []string{"internal/batchlimit"}, ours: only()},
	{paths: []string{"internal/turn"}, ours: only(), stdOnly: true},
	{paths: []string{"internal/growing"}, ours: withLeaves("internal/safefile")},
	{paths: []string{"internal/journal"}, ours: withLeaves("internal/job", "internal/exact", "internal/safefile")},
	{paths: []string{"internal/home"}, ours: withLeaves("internal/job", "internal/journal", "internal/atomicfile", "internal/exact", "internal/safefile")},
	{paths: []string{"internal/history"}, ours: withLeaves("internal/job", "internal/exact", "internal/safefile", "internal/saves")},
	{paths: []string{"internal/diagnose/textmatch"}, ours: only(), not: world, noClock: true},
	{paths: []string{"internal/diagnose/rule"}, ours: only("internal/job", "internal/text", "internal/diagnose/textmatch"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/rules"}, ours: only("internal/job", "internal/text", "internal/diagnose/rule", "internal/diagnose/textmatch"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/logtext"}, ours: only("internal/job", "internal/diagnose/textmatch"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/message", "internal/diagnose/worldsize", "internal/diagnose/endreport", "internal/diagnose/roster"}, ours: only("internal/job", "internal/diagnose/textmatch", "internal/diagnose/logtext"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/pytrace"}, ours: only("internal/job", "internal/diagnose/textmatch", "internal/diagnose/logtext", "internal/diagnose/message"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/nativetrace"}, ours: only("internal/job", "internal/diagnose/textmatch", "internal/diagnose/logtext", "internal/diagnose/message", "internal/diagnose/pytrace"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/laggard"}, ours: only("internal/job", "internal/diagnose/textmatch", "internal/diagnose/logtext", "internal/diagnose/roster"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/culprit"}, ours: only("internal/job", "internal/diagnose/textmatch", "internal/diagnose/logtext", "internal/diagnose/message", "internal/diagnose/pytrace", "internal/diagnose/endreport", "internal/diagnose/roster"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/outlook"}, ours: only("internal/job", "internal/diagnose/textmatch", "internal/diagnose/logtext", "internal/diagnose/message", "internal/diagnose/pytrace"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/finish"}, ours: only("internal/job", "internal/diagnose/textmatch", "internal/diagnose/logtext", "internal/diagnose/message", "internal/diagnose/pytrace", "internal/diagnose/outlook"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/reason"}, ours: only("internal/job", "internal/diagnose/logtext", "internal/diagnose/textmatch"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/sign"}, ours: only("internal/job", "internal/text", "internal/diagnose/reason", "internal/diagnose/rule", "internal/diagnose/rules", "internal/diagnose/textmatch", "internal/diagnose/logtext", "internal/diagnose/message", "internal/diagnose/pytrace", "internal/diagnose/nativetrace", "internal/diagnose/endreport", "internal/diagnose/outlook", "internal/diagnose/finish"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/refusal"}, ours: only("internal/job", "internal/diagnose/rule", "internal/diagnose/rules", "internal/diagnose/textmatch"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/telling"}, ours: only("internal/job", "internal/diagnose/rule", "internal/diagnose/textmatch", "internal/diagnose/endreport", "internal/diagnose/pytrace", "internal/diagnose/message", "internal/diagnose/nativetrace", "internal/diagnose/logtext"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/steps"}, ours: only("internal/job", "internal/diagnose/rule", "internal/diagnose/textmatch"), not: world, noClock: true},
	{paths: []string{"internal/diagnose/activity"}, ours: only("internal/job", "internal/text", "internal/diagnose/rule", "internal/diagnose/textmatch"), not: world, noClock: true},
	{paths: []string{"internal/diagnose"}, ours: only("internal/job", "internal/text", "internal/flightrecord", "checkpoint/pickle", "checkpoint/flaw", "internal/diagnose/..."), not: world, noClock: true},
	{paths: []string{"internal/flightrecord"}, ours: only("internal/job", "internal/text", "checkpoint/pickle", "checkpoint/flaw"), not: world, noClock: true},
	{paths: []string{"internal/curve"}, ours: only("internal/job", "internal/text"), not: world, noClock: true},
	{paths: []string{"internal/curve/judge"}, ours: only(), not: world, noClock: true, stdOnly: true},
	{paths: []string{"internal/metrics"}, ours: withLeaves("internal/job", "internal/curve", "internal/curve/judge", "internal/safefile")},
	{paths: []string{"internal/curveview"}, ours: withLeaves("internal/job", "internal/curve", "internal/curve/judge", "internal/metrics", "internal/safefile", "internal/journal", "internal/exact")},
	{paths: []string{"internal/saves"}, ours: only("internal/job", "internal/text"), not: world, noClock: true},
	{paths: []string{"internal/htmlreport"}, ours: only("internal/job", "internal/saves", "internal/text", "internal/vitals", "supervisor/runreport", "topology"), not: world, noClock: true},
	{paths: []string{"internal/runpage"}, ours: allBut("launcher/...", "preflight", "checkpoint", "internal/agent", "internal/controller/...")},
	{paths: []string{"internal/browser"}, ours: only(), stdOnly: true},
	{paths: []string{"internal/vitals"}, ours: only("internal/job"), not: world, noClock: true},
	{paths: []string{"internal/top"}, ours: allBut("launcher/...", "internal/agent/...", "internal/controller/...")},
	{paths: []string{"internal/screen"}, ours: only()},
	{paths: []string{"internal/queue"}, ours: only()},
	{paths: []string{"internal/presence"}, ours: withLeaves("internal/job", "internal/slurmjob", "internal/home", "internal/exact", "internal/journal", "internal/atomicfile", "internal/safefile")},
	{paths: []string{"internal/packedlog"}, ours: allBut("launcher/...", "preflight/...", "checkpoint/...", "topology/...", "internal/agent/...", "internal/controller/...")},
	{paths: []string{"internal/rulefile"}, ours: withLeaves("internal/job", "internal/yamldoc", "internal/safefile", "internal/diagnose/rule", "internal/diagnose/rules", "internal/diagnose/textmatch")},
	{paths: []string{"internal/recorded"}, ours: only(), stdOnly: true},
	{paths: []string{"internal/logset"}, ours: allBut("launcher/...", "preflight/...", "checkpoint/...", "!checkpoint/pickle", "!checkpoint/flaw", "topology/...", "internal/agent/...", "internal/controller/...")},
	{paths: []string{"internal/runlogs", "internal/follow", "internal/cleanup"}, ours: allBut("launcher/...", "preflight/...", "checkpoint/...", "topology/...", "internal/agent/...", "internal/controller/...")},
	{paths: []string{"internal/interrupt"}, ours: only("internal/job")},
	{paths: []string{"internal/namedfile"}, ours: withLeaves("internal/job", "internal/interrupt", "internal/safefile")},
	{paths: []string{"internal/hostlist", "internal/plan", "internal/hostview", "internal/mpiexec"}, ours: allBut("preflight/...", "checkpoint/...", "internal/controller/...")},
	{paths: []string{"internal/checkpointview"}, ours: allBut("launcher/...", "internal/agent/...", "internal/controller/...")},
	{paths: []string{"internal/view"}, ours: allBut("launcher/...", "internal/agent/...", "internal/controller/...")},
	{paths: []string{"internal/remote/resumable", "internal/remote/shell"}, ours: only(), stdOnly: true},
	{paths: []string{"internal/remote/sshconfig"}, ours: withLeaves("internal/remote/shell", "internal/safefile")},
	{paths: []string{"internal/remote/sshclient"}, ours: withLeaves("internal/remote/shell", "internal/remote/sshconfig", "internal/runclock", "internal/safefile")},
	{paths: []string{"internal/remote/stepserver"}, ours: withLeaves("internal/slurmjob")},
	{paths: []string{"internal/remote/sshtest"}, ours: only(), stdOnly: true},
	{paths: []string{"internal/environ", "internal/affinity", "internal/watchdog", "internal/selfcheck"}, ours: only(), not: []string{"net"}},
	{paths: []string{"internal/leftover"}, ours: withLeaves("internal/watchdog")},
	{paths: []string{"internal/contain"}, ours: only("internal/exact"), not: []string{"net"}},
	{paths: []string{"internal/remote/bridge"}, ours: withLeaves("internal/leftover", "internal/watchdog")},
	{paths: []string{"internal/shim"}, ours: withLeaves("internal/environ", "internal/affinity"), not: []string{"net"}},
	{paths: []string{"internal/early"}, ours: withLeaves("internal/environ", "internal/affinity", "internal/shim", "internal/watchdog", "internal/selfcheck", "internal/contain", "internal/exact"), not: []string{"net"}},
	{paths: []string{"internal/early/bridging"}, ours: withLeaves("internal/remote/bridge", "internal/leftover", "internal/watchdog")},

	{paths: []string{"topology"}, ours: withLeaves("internal/job"), not: []string{"os/exec"}},
	{paths: []string{"topology/inventory"}, ours: withLeaves("internal/job", "internal/safefile", "internal/yamldoc")},
	{paths: []string{"topology/nvml", "topology/sysfs"}, ours: withLeaves("internal/job", "topology")},
	{paths: []string{"topology/probe"}, ours: withLeaves("internal/job", "topology", "topology/nvml")},
	{paths: []string{"topology/machine"}, ours: withLeaves("internal/job", "topology", "topology/nvml", "topology/sysfs", "topology/probe", "topology/inventory", "internal/safefile", "internal/yamldoc")},
	{paths: []string{"topology/lease"}, ours: withLeaves("internal/job", "internal/atomicfile")},
	{paths: []string{"topology/lease/leasetest"}, ours: withLeaves("internal/job", "internal/atomicfile", "topology/lease")},

	{paths: []string{"preflight/mistyped"}, ours: only(), not: world, noClock: true},
	{paths: []string{"preflight/compare"}, ours: withLeaves("internal/job")},
	{paths: []string{"preflight/memory"}, ours: withLeaves("internal/job", "internal/atomicfile", "internal/environ", "internal/exact", "internal/safefile")},
	{paths: []string{"preflight"}, ours: allBut("launcher/...", "supervisor/...")},
	{paths: []string{"checkpoint/flaw"}, ours: only()},
	{paths: []string{"checkpoint/pickle", "checkpoint/pyliteral", "checkpoint/sstable"}, ours: only("checkpoint/flaw")},
	{paths: []string{"checkpoint/naming"}, ours: only(), not: world, noClock: true, stdOnly: true},
	{paths: []string{"checkpoint/layout"}, ours: only("checkpoint/flaw"), not: world, noClock: true},
	{paths: []string{"checkpoint/blob"}, ours: only()},
	{paths: []string{"checkpoint/finite"}, ours: only("checkpoint/blob"), noClock: true},
	{paths: []string{"checkpoint/archive", "checkpoint/compressed", "checkpoint/fortran", "checkpoint/hdf5", "checkpoint/numpy", "checkpoint/ocdbt", "checkpoint/onnx", "checkpoint/safetensors", "checkpoint/tensorflow", "checkpoint/torchfile"},
		ours: only("checkpoint/archive", "checkpoint/blob", "checkpoint/finite", "checkpoint/flaw", "checkpoint/hdf5", "checkpoint/numpy", "checkpoint/pickle", "checkpoint/pyliteral", "checkpoint/sstable", "checkpoint/torchfile")},
	{paths: []string{"checkpoint"}, ours: allBut("launcher/...", "supervisor/...", "topology/...")},

	{paths: []string{"launcher"}, ours: allBut("supervisor/...", "preflight", "checkpoint")},
	{paths: []string{"launcher/agents"}, ours: withLeaves("internal/job", "internal/wire")},
	{paths: []string{"launcher/agents/agentstest"}, ours: only("internal/wire")},
	{paths: []string{"launcher/collect"}, ours: withLeaves("internal/job", "internal/safefile", "internal/wire", "launcher/agents")},
	{paths: []string{"launcher/lifecycle"}, ours: only(), stdOnly: true, noClock: true},
	{paths: []string{"launcher/rankenv"}, ours: withLeaves("internal/job", "internal/template", "topology")},
	{paths: []string{"launcher/meeting"}, ours: withLeaves("internal/job", "internal/exact", "internal/wire", "launcher/agents", "preflight/compare")},
	{paths: []string{"launcher/network"}, ours: withLeaves("internal/wire")},
	{paths: []string{"launcher/stdin"}, ours: withLeaves()},
	// These packages start processes on hosts. They must not know each other, or the agent that they start.
	{paths: []string{"launcher/local", "launcher/ssh", "launcher/container", "launcher/slurm", "launcher/kubectl"},
		ours: allBut("supervisor/...", "preflight", "checkpoint", "internal/agent", "launcher",
			"launcher/local", "launcher/ssh", "launcher/container", "launcher/slurm", "launcher/kubectl")},
	{paths: []string{"launcher/suite"}, ours: withLeaves("internal/job", "internal/exact", "internal/leftover", "internal/watchdog", "internal/queue", "launcher", "launcher/agents", "launcher/collect", "launcher/lifecycle", "launcher/rankenv", "internal/template", "launcher/meeting", "launcher/network", "launcher/stdin", "launcher/pmi1", "internal/wire", "preflight/compare", "internal/atomicfile", "internal/safefile", "topology", "topology/lease")},
	// These packages implement ways in which ranks find each other. They must not know each other.
	{paths: []string{"launcher/pmi1", "launcher/openmpi", "launcher/torch"},
		ours: allBut("supervisor/...", "preflight", "checkpoint",
			"launcher/pmi1", "launcher/openmpi", "launcher/torch")},

	{paths: []string{"internal/wire"}, ours: allBut("supervisor/...", "launcher/...")},
	{paths: []string{"internal/agent"}, ours: allBut("supervisor/...", "launcher/...", "!launcher/pmi1", "!launcher/openmpi", "!launcher/container")},
	{paths: []string{"internal/agent/box"}, ours: withLeaves("internal/job", "internal/agent/identity", "internal/agent/process", "internal/agent/hostclock", "internal/agent/tempfiles", "internal/environ", "internal/leftover", "internal/watchdog", "launcher/container", "topology", "topology/nvml", "topology/probe")},
	{paths: []string{"internal/agent/hostclock", "internal/agent/agenttest", "internal/agent/identity"}, ours: only()},
	{paths: []string{"internal/agent/notify"}, ours: only("internal/runclock")},
	{paths: []string{"internal/agent/process", "internal/agent/process/processtest"}, ours: withLeaves("internal/agent/process", "internal/agent/agenttest", "internal/agent/hostclock", "internal/leftover", "internal/watchdog", "internal/environ", "internal/job", "topology", "topology/nvml", "topology/probe")},
	{paths: []string{"internal/agent/report"}, ours: withLeaves("internal/job", "internal/exact", "internal/wire", "internal/agent/notify")},
	{paths: []string{"internal/agent/cgroup", "internal/agent/errorfile", "internal/agent/health", "internal/agent/kernellog", "internal/agent/output", "internal/agent/pulse", "internal/agent/peer", "internal/agent/progress", "internal/agent/tempfiles"}, ours: allBut("supervisor/...", "launcher/...", "preflight", "checkpoint", "internal/wire", "internal/agent")},
	{paths: []string{"internal/agent/mpilib"}, ours: withLeaves("internal/job", "internal/environ", "internal/agent/process", "internal/agent/agenttest", "internal/agent/hostclock", "internal/leftover", "internal/watchdog", "topology", "topology/nvml", "topology/probe")},
	{paths: []string{"internal/agent/survey"}, ours: allBut("supervisor/...", "launcher/...", "!launcher/openmpi", "preflight", "checkpoint", "internal/agent", "internal/agent/meet")},
	{paths: []string{"internal/agent/survey/pathfact"}, ours: withLeaves("internal/job")},
	{paths: []string{"internal/agent/devices"}, ours: allBut("supervisor/...", "launcher/...", "preflight", "checkpoint", "internal/wire", "internal/agent")},
	{paths: []string{"internal/agent/measure"}, ours: withLeaves("internal/job", "internal/affinity", "internal/agent/survey/pathfact", "internal/agent/process", "internal/agent/agenttest", "internal/agent/hostclock", "internal/leftover", "internal/watchdog", "internal/environ", "topology", "topology/nvml", "topology/probe")},
	{paths: []string{"internal/agent/meet"}, ours: withLeaves("internal/job", "internal/wire", "internal/runclock", "internal/agent/survey/pathfact")},
	{paths: []string{"internal/agent/snapshot"}, ours: withLeaves()},
	{paths: []string{"internal/agent/saves"}, ours: allBut("supervisor/...", "launcher/...", "preflight", "topology/...", "internal/wire", "internal/agent")},
	{paths: []string{"internal/agent/stacks"}, ours: withLeaves("internal/job", "internal/faulthandler", "internal/flightrecord", "checkpoint/pickle", "checkpoint/flaw", "internal/agent/process", "internal/agent/agenttest", "internal/agent/hostclock", "internal/leftover", "internal/watchdog", "internal/environ", "topology", "topology/nvml", "topology/probe")},
	{paths: []string{"internal/agent/gang"}, ours: allBut("supervisor/...", "launcher/...", "preflight", "checkpoint", "internal/agent", "internal/agent/mpilib", "internal/agent/wireup/...")},
	{paths: []string{"internal/agent/wireup"}, ours: allBut("supervisor/...", "launcher/...", "preflight", "checkpoint", "internal/agent", "internal/agent/wireup/pmi", "internal/agent/wireup/openmpi")},
	{paths: []string{"internal/agent/wireup/pmi", "internal/agent/wireup/openmpi"}, ours: allBut("supervisor/...", "launcher/...", "!launcher/pmi1", "!launcher/openmpi", "preflight", "checkpoint", "internal/agent", "internal/agent/wireup/pmi", "internal/agent/wireup/openmpi")},

	{paths: []string{"supervisor/runreport"}, ours: withLeaves("internal/job", "internal/saves")},
	{paths: []string{"supervisor/earlystop"}, ours: withLeaves("internal/job", "internal/curve/judge"), not: world, noClock: true},
	{paths: []string{"supervisor/exitcode"}, ours: withLeaves("internal/job")},
	{paths: []string{"supervisor/eventkey"}, ours: withLeaves("internal/job", "internal/exact")},
	{paths: []string{"supervisor/order"}, ours: withLeaves("internal/job")},
	{paths: []string{"supervisor/retry"}, ours: withLeaves("internal/job"), not: world, noClock: true},
	{paths: []string{"supervisor/secret"}, ours: withLeaves("internal/job")},
	{paths: []string{"supervisor"}, ours: allBut("launcher/...", "topology/...", "preflight", "checkpoint")},
	{paths: []string{"supervisor/watch"}, ours: withLeaves("internal/job", "supervisor/watch/...", "internal/flightrecord", "checkpoint/pickle", "checkpoint/flaw"), not: world, noClock: true},
	{paths: []string{"supervisor/watch/stacktree"}, ours: withLeaves("internal/job"), not: world, noClock: true},

	{paths: []string{"internal/thishost"}, ours: allBut("supervisor/...", "preflight", "checkpoint", "internal/agent")},
	{paths: []string{"internal/curvewatch"}, ours: withLeaves("internal/job", "internal/curve", "internal/curve/judge", "internal/metrics", "internal/safefile")},
	{paths: []string{"internal/controller/gpuwatch"}, ours: allBut("supervisor/...", "preflight", "checkpoint", "internal/agent")},
	{paths: []string{"internal/controller/gpuqueue"}, ours: allBut("preflight", "checkpoint", "internal/agent")},
	{paths: []string{"internal/controller/userenv"}, ours: allBut("supervisor/...", "launcher/...", "preflight", "checkpoint", "internal/agent")},
	{paths: []string{"internal/controller/detached"}, ours: allBut("supervisor/...", "launcher/...", "preflight", "checkpoint", "internal/agent")},
	{paths: []string{"internal/record"}, ours: allBut("launcher/...", "preflight", "checkpoint", "topology/...", "internal/agent")},
	{paths: []string{"internal/controller/inspect"}, ours: allBut("supervisor/...", "launcher/...", "preflight", "checkpoint", "topology/...", "internal/agent")},
	{paths: []string{"internal/controller/stop"}, ours: allBut("launcher/...", "preflight", "checkpoint", "topology/...", "internal/agent")},
	{paths: []string{"internal/submit"}, ours: withLeaves("internal/job", "internal/remote/shell")},
	{paths: []string{"internal/slurmjob"}, ours: only(), stdOnly: true},
	{paths: []string{"internal/controller/batchjob"}, ours: withLeaves("internal/slurmjob")},
	{paths: []string{"internal/controller/requeue"}, ours: withLeaves("internal/job", "internal/atomicfile", "internal/safefile", "internal/exact", "internal/saves", "supervisor/runreport")},
	{paths: []string{"internal/controller/batchend"}, ours: withLeaves("internal/batchlimit", "internal/slurmjob", "internal/job", "supervisor/order")},
	{paths: []string{"internal/controller/hosts"}, ours: allBut("preflight", "checkpoint", "internal/agent")},
	{paths: []string{"internal/controller/hostclean"}, ours: allBut("preflight", "checkpoint", "internal/agent")},
	{paths: []string{"internal/controller"}, ours: allBut("internal/agent/...")},
	{paths: []string{"cmd/gangrun"}, ours: allBut()},
	{paths: []string{"cmd/gangrun-nvml"}, ours: withLeaves("internal/job", "internal/selfcheck", "topology", "topology/nvml")},

	{paths: []string{"internal/testhosts/..."}, ours: allBut()},
	{paths: []string{"internal/testimage", "internal/testcontainerd"}, ours: withLeaves("internal/noskip")},
	{paths: []string{"internal/bench"}, ours: withLeaves("internal/job", "internal/diagnose/rule", "internal/diagnose/rules", "internal/diagnose/textmatch")},
	{paths: []string{"internal/failures"}, ours: withLeaves("internal/job", "internal/jobcheck", "internal/template", "internal/jobfile", "internal/yamldoc", "internal/saves", "supervisor/runreport")},
	{paths: []string{"internal/layers"}, ours: only()},
	{paths: []string{"internal/noskip", "internal/testbuild", "internal/testport", "internal/testseed"}, ours: only(), stdOnly: true},
	{paths: []string{"internal/testexec"}, ours: only("internal/noskip")},
	{paths: []string{"internal/deps"}, noGo: true},
	{paths: []string{"examples/..."}, ours: only()},
}

// reserve lists the only packages of gangrun that may import the packages that match the pattern.
type reserve struct {
	pattern string
	to      []string
}

var reserves = []reserve{
	{pattern: "cmd/..."},
	{pattern: "golang.org/x/crypto/ssh/...", to: []string{"internal/remote/sshclient", "internal/remote/sshconfig", "internal/remote/stepserver"}},
	{pattern: "github.com/containerd/...", to: []string{"launcher/container"}},
	{pattern: "github.com/google/go-containerregistry/...", to: []string{"internal/testimage", "internal/controller"}},
	{pattern: "github.com/NVIDIA/go-nvml/...", to: []string{"topology/nvml"}},
	{pattern: "modernc.org/...", to: []string{"internal/history"}},
	{pattern: "C", to: []string{"topology/nvml", "cmd/gangrun-nvml"}},
}
