// Package userenv prepares the user's environment for ranks. It says which variables go to other hosts, and whether
// they are small enough for a process to start. It also finds out how they differ from the variables with which a run
// was started.
package userenv

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/environ"
)

// perHost has the variables that are valid only on one host, or in one login or batch task. Ranks on other hosts do not
// get them. An entry that ends in = stands for every variable that begins with the text before the =.
var perHost = []string{
	"HOME", "USER", "LOGNAME", "SHELL", "MAIL", "PWD", "OLDPWD", "SHLVL", "_", "TERM_SESSION_ID", "HOSTNAME", "HOST", "TTY", "GPG_TTY", "WINDOWID",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "TMPDIR", "TMP", "TEMP", "CUDA_VISIBLE_DEVICES", "GANGRUN_HOME", "KRB5CCNAME",
	"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE", "SLURM_CPUS_ON_NODE",
	"SLURMD_NODENAME", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
	"SSH_=", "XDG_=", "DBUS_=", "SLURM_STEP_=", "SLURM_TASK_=", "TMUX=", "STY=", "SUDO_=",
}

// ForRanks returns the variables of an environment that the ranks on all hosts get.
func ForRanks(env []string) []string {
	return slices.DeleteFunc(environ.Inherited(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(perHost, func(own string) bool {
			begin, isPrefix := strings.CutSuffix(own, "=")
			return name == own || isPrefix && strings.HasPrefix(name, begin)
		})
	})
}
