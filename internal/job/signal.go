package job

import "strconv"

// SignalName returns the name of a Linux signal, as in "SIGKILL".
func SignalName(signal int) string {
	names := [...]string{1: "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE",
		"SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD",
		"SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM",
		"SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS"}
	if signal > 0 && signal < len(names) {
		return names[signal]
	}
	return "signal " + strconv.Itoa(signal)
}
