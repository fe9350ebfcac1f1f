package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const singletonHint = "run with --mpi openmpi, so that mpirun starts one daemon on each host instead of one for each rank"

var mpiRuntime = []rule.Rule{{
	Category: job.MPIRuntime, Signature: "daemon-lost", Confidence: 0.9, Traits: rule.Cascade,
	Meaning: "mpirun lost one of its daemons, usually because a host or a rank ended",
	Hint:    "a host or its network failed, or the daemon was killed there: look at that host first",
	Needles: []string{"assert (!closed) failed", "close of the compute node connection", "apid_kill", "has died: pmi", "daemon has unexpectedly failed", "lost connection to a remote daemon", "hyd_pmcd_pmiserv_control_listen", "has lost communication with a remote daemon before", "one or more daemons died", "prted daemon unexpectedly", "no response from the remote daemon", "hyd_dmx_poll_wait_for_proxy_event", "hydt_dmxu_poll_wait_for_event"},
}, {
	Category: job.HostLost, Signature: "daemon-host-lost", Confidence: 0.85, Traits: rule.Cascade,
	Meaning: "mpirun lost contact with the daemon on another host, usually because that host or its network failed",
	Hint:    "look at the host that the next lines name: whether it is up, and whether somebody killed the daemon there",
	Needles: []string{"has lost communication with a remote daemon"},
	Unless:  textmatch.New(`\bbefore\b.{0,40}\b(?:ready|launch|start|callback)`),
}, {
	Category: job.MPIRuntime, Signature: "daemon-lost", Confidence: 0.95,
	Hint: "a host or its network failed, or the daemon was killed there: look at that host first",
	Ends: rule.Ends{Reasons: []job.Reason{job.ReasonDaemonLost}},
}, {
	Category: job.LaunchError, Signature: "daemon-not-started", Confidence: 0.9,
	Meaning: "mpirun could not start its daemon on one or more hosts",
	Hint:    "check that every host can be reached, that the same MPI is installed there, and that LD_LIBRARY_PATH is set for it",
	Needles: []string{"unable to start the daemon on", "orted: command not found", "prted: command not found", "hydu_create_process", "bstrap_proxy", "error launching processes", "hydra_bstrap_proxy: not found", "hydra_pmi_proxy", "pmi_proxy: no such file", "jsm server is not responding"},
	Unless:  textmatch.New(`(?i)execvp error on file|debug|verbose|unable to run (?:bstrap_)?proxy on|make sure|please check`),
	Find:    textmatch.New(`(?P<artefact>orted|prted): command not found`),
}, {
	Category: job.MPIRuntime, Signature: "daemons-missing", Confidence: 0.8, Traits: rule.Generic,
	Meaning: "mpirun could not start its daemons, and does not say why",
	Hint:    "check that every host can be reached, that the same MPI is installed there, and that LD_LIBRARY_PATH is set for it",
	Needles: []string{"unable to reliably start one or more daemons", "unable to start one or more daemons", "a daemon (pid", "timeout waiting for task launch"},
}, {
	Category: job.MPIRuntime, Signature: "daemon-lost", Confidence: 0.9,
	Hint:    "look at that host first: whether it is up, and whether its MPI and the network work there",
	Needles: []string{"unable to run bstrap_proxy on", "unable to run proxy on"},
	Match:   textmatch.New(`unable to run (?:bstrap_)?proxy on (?P<host>[\w.-]+)`),
}, {
	Category: job.MPIRuntime, Signature: "mpi-singleton-daemon", Confidence: 0.9, Traits: rule.Continued,
	Meaning: "a rank of Open MPI that was started without mpirun could not start its own daemon, orted",
	Hint:    singletonHint,
	Needles: []string{"the singleton application was not able to find the executable"},
}, {
	Category: job.MPIRuntime, Signature: "mpi-singleton-daemon", Confidence: 0.9,
	Hint:    singletonHint,
	Needles: []string{"unable to start a daemon on the local node", "ess_singleton_module.c at line"},
}, {
	Category: job.MPIRuntime, Signature: "mpi-init", Confidence: 0.85, Traits: rule.Peer,
	Meaning: "MPI could not start up in a rank",
	Hint:    "look at the lines after it for the network or library that failed; program and launcher may be of different MPIs",
	Needles: []string{"fatal error in internal_init", "fatal error in mpi_init", "fatal error in pmpi_init", "mpi_init failed", "an error occurred in mpi_init", "pmi_init failed", "pmix_init failed", "opal_init failed", "orte_init failed",
		"pmi2_init failed", "mpi_init_thread failed", "unable to reach the pmix server", "pmix server unreachable", "pmix error: error in file", "pmix_error", "pmi_barrier", "pmi server", "it looks like mpi_init failed", "it looks like mpi runtime init failed", "it looks like orte_init failed", "it looks like opal_init failed", "it looks like pmix_init failed", "singletons will be started", "no pmix server was reachable", "unique transport key", "components were able to be opened", "listener thread failed to start", "pmi_init returned", "pmi2_init returned", "pmi_get_appnum returned", "unable to write to pmi_fd", "writeline error; fd", "mpi/pmix_v", "mpi/pmi2: ", "unable to create the desired directory", "ibm license", "fallback fabric is not enabled", "gds_ds12_lock", "session directory"},
	Match:  textmatch.New(`(?i)fatal error in (?:internal_|p?mpi_)init|(?:p?mpi|pmi2?|pmix|opal|orte|mpi_init_thread)(?:_init(?:_thread)?)? failed|error occurred in mpi_init|unable to reach the pmix server|pmix server (?:unreachable|was reachable)|pmix error: error in file|pmix_err_|pmix_error|pmi_barrier\w* (?:returned|failed)|lost connection to (?:the )?pmi server|it looks like (?:mpi_init|mpi runtime init|orte_init|opal_init|pmix_init) failed|singletons will be started|obtaining unique transport key|components were able to be opened in the \w+ framework|listener thread failed to start|pmi2?_(?:init|get_appnum) returned -?[1-9]|unable to write to pmi_fd|write_?line error; fd|mpi/pmix_v\d: .*(?:error|fail|cannot|timeout)|mpi/pmi2: (?:failed|.* error)|unable to create the desired directory|checking ibm license|fallback fabric is not enabled|gds_ds12_lock`),
	Unless: textmatch.New(`(?i)pmix_err_(?:lost_connection|not_found)|warn`),
}, {
	Category: job.MPIRuntime, Signature: "mpi-transport", Confidence: 0.8, Traits: rule.Peer,
	Meaning: "MPI's transport (UCX, libfabric, shared memory) failed",
	Hint:    "look at the device and host named; UCX_TLS, FI_PROVIDER or OMPI_MCA_btl choose another transport",
	Needles: []string{"ucx  error", "ucx error", "pml add procs failed", "btl_openib", "ofi call", "mtl_ofi", "unable to create a sm", "no transports are available", "unreachable by", "unable to reach each other for mpi", "error getting hca", "no ib device found", "failed to initialize hca", "no active hca", "ofi poll failed", "ofi addrinfo", "shm_open failed", "no usable transports", "cma: no rdma", "cxil_", "cxi: "},
	Unless:  textmatch.New(`(?i)retry count exceeded|endpoint timeout|connection reset|keepalive|memlock|cuda_ipc|resource temporarily unavailable|cannot allocate memory`),
	Match:   textmatch.New(`UCX +ERROR|PML add procs failed|unable to reach each other for MPI|[Ee]rror getting HCA|[Nn]o (?:IB device found|active HCA)|[Ff]ailed to initialize HCA|OFI addrinfo\(\) failed|no usable transports|cxil_\w+(?:\(\))? (?:failed|error)|btl_openib.*(?:fail|error)|OFI call \w+ failed|mtl_ofi.*(?:fail|error)|unreachable by`),
}, {
	Category: job.MPIRuntime, Signature: "mpi-transport", Confidence: 0.9,
	Hint:    "look at the network card of the host named, and at who else uses it: its contexts may be used up (hfi1_control, opainfo, ibstat)",
	Needles: []string{"failed to create ucp", "psm2 can't open", "psm3 can't open", "psm error handler", "psm2 was unable to", "psm_ep_open failed", "assign_context command failed", "ofi endpoint open failed", "ofi domain open failed", "ofi fi_open", "ofi get address vector", "unable to initialize verbs nic"},
	Match:   textmatch.New(`PSM[23]? can't open (?:hfi|nic) unit|PSM error handler|PSM2 was unable to|psm_ep_open failed|assign_context command failed|OFI (?:endpoint|domain) open failed|OFI fi_open\w* failed|OFI get address vector|Unable to initialize verbs NIC|[Ff]ailed to create UCP (?:worker|context|endpoint)`),
	Find:    textmatch.New(`^(?P<host>[\w-]+)\.(?P<pid>\d+)PSM|mpi_rank_(?P<rank>\d+)\]|^[\w.-]+:rank(?P<rank>\d+)[:.]`),
}, {
	Category: job.MPIRuntime, Signature: "mpi-init", Confidence: 0.6, Traits: rule.Weak | rule.Generic | rule.Peer,
	Hint:    "look at the lines beside it for the network or library that failed; program and launcher may be of different MPIs",
	Needles: []string{"pmix error: ", "orte_error_log: ", "prte error: ", "a requested component was not found", "local abort before mpi_init"},
	Match:   textmatch.New(`PMIX ERROR: \S.* in file|ORTE_ERROR_LOG: .* in file|PRTE ERROR: .* in file|requested component was not found|Local abort before MPI_INIT`),
	Unless:  textmatch.New(`show_help|gds_|dstore_|singleton`),
}}
