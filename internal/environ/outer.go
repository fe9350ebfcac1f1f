package environ

import (
	"slices"
	"strings"
)

// rankOf lists the variables by which a launcher tells a process that it is one rank, or task, of a job. An entry with
// a * at its end stands for all variables whose names begin with the text before the *.
var rankOf = []string{
	// Variables of torchrun. This includes the variables that gangrun sets, too (RANK, MASTER_ADDR ...), because not
	// every process that gangrun starts is a rank.
	"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "NODE_RANK", "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE",
	"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_USE_AGENT_STORE",
	"TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_TIMER_FILE",
	// Variables of Slurm about one task or step. Variables about the allocation are kept.
	"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS", "SLURM_TASK_PID", "SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_LAUNCHER_PORT",
	"SLURM_SRUN_COMM_HOST", "SLURM_SRUN_COMM_PORT", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_PMI_*", "SLURM_PMIX_*",
	// PMI-1, PMI-2 and PMIx, whatever program serves them.
	"PMI_*", "PMI2_*", "PMIX_*",
	// Open MPI. OMPI_MCA_* are settings of the user, except those that its daemon
	// sets for one rank.
	"OMPI_COMM_WORLD_*", "OMPI_UNIVERSE_SIZE", "OMPI_APP_CTX_*", "OMPI_NUM_APP_CTX", "OMPI_FIRST_RANKS", "OMPI_COMMAND", "OMPI_ARGV", "OMPI_FILE_LOCATION",
	"OMPI_MCA_ess*", "OMPI_MCA_initial_wdir", "OMPI_MCA_orte_ess*", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_orte_local_daemon_uri", "OMPI_MCA_orte_app_num",
	"OMPI_MCA_orte_precondition*", "OMPI_MCA_orte_bound*", "OMPI_MCA_orte_jobfam*", "OMPI_MCA_orte_top_session_dir", "OMPI_MCA_orte_launch",
	"OMPI_MCA_orte_num_nodes", "PRTE_MCA_ess*",
	// MPICH's hydra, Intel MPI, MVAPICH. I_MPI_* are settings of the user.
	"HYDI_*", "HYDRA_*", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", "MV2_COMM_WORLD_*", "MPISPAWN_*",
	// Flux, HPE's PALS, IBM's jsrun.
	"FLUX_TASK_*", "PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_NODEID", "JSM_NAMESPACE_*",
}

// settings has beginnings of variables that users set, and that are kept although rankOf matches them.
var settings = []string{"PMIX_MCA_"}

// Inherited returns an environment without the variables of an outer job in which gangrun was
// started. With those variables, a process would act as a rank of that job.
func Inherited(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(rankOf, func(of string) bool {
			begin, prefix := strings.CutSuffix(of, "*")
			return name == of || prefix && strings.HasPrefix(name, begin)
		}) && !slices.ContainsFunc(settings, func(begin string) bool { return strings.HasPrefix(name, begin) })
	})
}
