package environ_test

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/environ"
)

// TestInherited checks that variables that make a process a rank of an outer job are left out. Variables that users
// set, or that describe an allocation, must stay. The names are those of mpirun 4.1, hydra 4.0, srun 22.05 and
// torchrun 1.13 and 2.
func TestInherited(t *testing.T) {
	stays := []string{
		"PATH=/bin", "A=RANK=1", "RANKS=4", "MY_RANK=1", "PMI=1", "EMPTY=",
		"SLURM_JOB_ID=7", "SLURM_JOBID=7", "SLURM_JOB_NODELIST=h[1-2]", "SLURM_NODELIST=h[1-2]", "SLURM_NNODES=2", "SLURM_NTASKS=4", "SLURM_JOB_GPUS=0",
		"SLURM_STEP_GPUS=0", "SLURM_CPUS_ON_NODE=8", "SLURM_ARRAY_TASK_ID=3", "SLURM_RESTART_COUNT=1", "SLURM_MPI_TYPE=none",
		"OMPI_MCA_btl=self,tcp", "OMPI_MCA_orte_tmpdir_base=/big", "OMPI_MCA_mpi_yield_when_idle=1", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_CC=clang",
		"PMIX_MCA_gds=hash", "PRTE_MCA_plm_ssh_agent=ssh", "I_MPI_DEBUG=5", "I_MPI_FABRICS=shm", "MPIR_CVAR_CH4_OFI_TAG_BITS=4", "MV2_ENABLE_AFFINITY=0",
		"FLUX_URI=local:///x", "OMP_NUM_THREADS=2", "TORCHELASTIC_ENABLE_FILE_TIMER=1", "NCCL_DEBUG=INFO", "CUDA_VISIBLE_DEVICES=0",
		"BASH_FUNC_module%%=() {  echo hi\n}", "no assignment",
	}
	goes := []string{
		"RANK=1", "LOCAL_RANK=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=0", "GROUP_WORLD_SIZE=1", "ROLE_RANK=1", "ROLE_NAME=default", "ROLE_WORLD_SIZE=2", "NODE_RANK=0",
		"MASTER_ADDR=h9", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=x", "TORCHELASTIC_RESTART_COUNT=0", "TORCHELASTIC_MAX_RESTARTS=0",
		"TORCHELASTIC_USE_AGENT_STORE=True", "TORCHELASTIC_ERROR_FILE=/tmp/0/error.json",
		"SLURM_PROCID=1", "SLURM_LOCALID=1", "SLURM_NODEID=0", "SLURM_GTIDS=0,1", "SLURM_TASK_PID=77", "SLURM_STEP_ID=0", "SLURM_STEPID=0", "SLURM_SRUN_COMM_PORT=41000",
		"SLURM_PMIX_MAPPING_SERV=(vector,(0,1,2))", "SLURM_LAUNCH_NODE_IPADDR=10.0.0.1",
		"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=8", "PMI_PORT=h1:4", "PMI2_FD=5", "PMIX_RANK=1", "PMIX_NAMESPACE=7", "PMIX_SERVER_URI41=x", "PMIX_ID=7.1", "PMIX_VERSION=4.2", "PMIX_SYSTEM_TMPDIR=/tmp",
		"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_UNIVERSE_SIZE=2", "OMPI_APP_CTX_NUM_PROCS=2", "OMPI_NUM_APP_CTX=1", "OMPI_FIRST_RANKS=0",
		"OMPI_COMMAND=a", "OMPI_ARGV=b", "OMPI_FILE_LOCATION=/tmp/x", "OMPI_MCA_ess=^singleton", "OMPI_MCA_ess_base_vpid=1", "OMPI_MCA_orte_hnp_uri=x",
		"OMPI_MCA_orte_ess_num_procs=2", "OMPI_MCA_initial_wdir=/", "OMPI_MCA_orte_launch=1",
		"HYDI_CONTROL_FD=7", "MPI_LOCALNRANKS=2", "MPI_LOCALRANKID=1", "MV2_COMM_WORLD_RANK=1", "FLUX_TASK_RANK=1", "PALS_RANKID=1", "JSM_NAMESPACE_RANK=1",
		"RANK=", "PMI_RANK",
	}
	var mixed []string
	for i := range max(len(stays), len(goes)) {
		if i < len(stays) {
			mixed = append(mixed, stays[i])
		}
		if i < len(goes) {
			mixed = append(mixed, goes[i])
		}
	}
	before := slices.Clone(mixed)
	if got := environ.Inherited(mixed); !slices.Equal(got, stays) {
		t.Errorf("got  %q\nwant %q", got, stays)
	}
	if !slices.Equal(mixed, before) {
		t.Error("the environment itself has changed")
	}
	if got := environ.Inherited(nil); len(got) != 0 {
		t.Errorf("of nothing there is %q", got)
	}
}
