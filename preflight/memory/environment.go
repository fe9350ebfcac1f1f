package memory

import (
	"path"
	"slices"
	"strings"
)

// incidental has patterns of variables that do not count in a trial's identity. They differ from one shell,
// login or batch job to the next, and do not change what a program does. All other variables count, because an
// unnecessary trial costs less than a missing one.
var incidental = []string{
	// The state of the shell. The working directory is part of the job.
	"_", "SHLVL", "PWD", "OLDPWD", "PS1", "PROMPT_COMMAND",
	// The terminal that gangrun was started in.
	"TERM", "TERM_*", "COLORTERM", "COLUMNS", "LINES", "WINDOWID", "TMUX", "TMUX_*", "STY", "WINDOW",
	"VTE_VERSION", "VSCODE_*", "GNOME_TERMINAL_*", "KONSOLE_*", "KITTY_*", "ITERM_*",
	// The login session.
	"SSH_*", "XDG_SESSION_*", "XDG_SEAT", "XDG_VTNR", "DBUS_SESSION_BUS_ADDRESS", "TTY", "GPG_TTY",
	"INVOCATION_ID", "JOURNAL_STREAM",
	// The batch job, as far as it only counts jobs, steps and processes.
	"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME", "SLURM_STEP_*", "SLURM_STEPID",
	"SLURM_TASK_PID", "SLURM_SRUN_COMM_*",
	// gangrun's own settings. What they say of the job is in its Spec.
	"GANGRUN_*",
}

// counted returns the variables of env that count in a trial's identity, sorted.
func counted(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(incidental, func(pattern string) bool {
			match, _ := path.Match(pattern, name) // the patterns are well formed
			return match
		})
	})
	slices.Sort(env)
	return env
}
