package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const singletonHint = "run with --mpi openmpi, so that mpirun starts one daemon on each host instead of one for each rank"

var mpiRuntime = []Rule{{
	Category: job.MPIRuntime, Signature: "daemon-lost", Confidence: 0.9, Traits: Cascade,
	Meaning: "mpirun lost one of its daemons, usually because a host or a rank ended",
	Hint:    "a host or its network failed, or the daemon was killed there: look at that host first",
	Needles: []string{"has lost communication with a remote daemon", "daemon has unexpectedly failed", "lost connection to a remote daemon", "hyd_pmcd_pmiserv_control_listen", "one or more daemons died", "prted daemon unexpectedly"},
}, {
	Category: job.MPIRuntime, Signature: "daemon-lost", Confidence: 0.95,
	Hint: "a host or its network failed, or the daemon was killed there: look at that host first",
	Ends: Ends{Reasons: []job.Reason{job.ReasonDaemonLost}},
}, {
	Category: job.MPIRuntime, Signature: "daemon-not-started", Confidence: 0.9,
	Meaning: "mpirun could not start its daemons on every host",
	Hint:    "check that every host can be reached, that the same MPI is installed there, and that LD_LIBRARY_PATH is set for it",
	Needles: []string{"unable to reliably start one or more daemons", "unable to start the daemon on", "orted: command not found", "prted: command not found", "hydu_create_process", "unable to start one or more daemons"},
	Find:    textmatch.New(`(?P<artefact>orted|prted): command not found`),
}, {
	Category: job.MPIRuntime, Signature: "mpi-singleton-daemon", Confidence: 0.9, Traits: Continued,
	Meaning: "a rank of Open MPI that was started without mpirun could not start its own daemon, orted",
	Hint:    singletonHint,
	Needles: []string{"the singleton application was not able to find the executable"},
}, {
	Category: job.MPIRuntime, Signature: "mpi-singleton-daemon", Confidence: 0.9,
	Hint:    singletonHint,
	Needles: []string{"unable to start a daemon on the local node", "ess_singleton_module.c at line"},
}, {
	Category: job.MPIRuntime, Signature: "mpi-init", Confidence: 0.85, Traits: Peer,
	Meaning: "MPI could not start up in a rank",
	Hint:    "look at the lines after it for the network or library that failed; program and launcher may be of different MPIs",
	Needles: []string{"fatal error in internal_init", "fatal error in mpi_init", "fatal error in pmpi_init", "mpi_init failed", "an error occurred in mpi_init", "pmi_init failed", "pmix_init failed", "opal_init failed", "orte_init failed",
		"pmi2_init failed", "mpi_init_thread failed", "unable to reach the pmix server", "pmix server unreachable", "pmix error: error in file", "pmix_error", "pmi_barrier", "pmi server"},
}, {
	Category: job.MPIRuntime, Signature: "mpi-transport", Confidence: 0.8, Traits: Peer,
	Meaning: "MPI's transport (UCX, libfabric, shared memory) failed",
	Hint:    "look at the device and host named; UCX_TLS, FI_PROVIDER or OMPI_MCA_btl choose another transport",
	Needles: []string{"ucx  error", "ucx error", "pml add procs failed", "btl_openib", "ofi call", "mtl_ofi", "unable to create a sm", "no transports are available", "unreachable by"},
	Match:   textmatch.New(`UCX +ERROR|PML add procs failed|btl_openib.*(?:fail|error)|OFI call \w+ failed|mtl_ofi.*(?:fail|error)|unreachable by`),
}}
