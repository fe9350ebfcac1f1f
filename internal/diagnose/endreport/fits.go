package endreport

import "github.com/gangrun/gangrun/internal/job"

// Fits reports whether a process with a known failure may have ended as r says: an abort ends by SIGABRT, an exception
// with a code. category is that of the failure. signal is the signal that the failure names, or 0. recorded is true if
// a record of the host tells of the failure, and exception if an exception does.
func (r *Report) Fits(category job.Category, signal int, recorded, exception bool) bool {
	switch {
	case recorded && category == job.CPUOOM:
		return r.Signal == 9
	case signal != 0:
		return r.Signal == signal
	case category == job.InvalidMemoryAccess:
		return r.Signal == 11 || r.Signal == 7 || r.Signal == 6
	case category == job.CoreDump, category == job.Assertion && !exception:
		return r.Signal == 6 || r.Signal == 4 || r.Signal == 8
	case category == job.Killed, category == job.CPUOOM:
		return r.Signal == 9 || r.Signal == 6 || r.Code > 0
	}
	return r.Code > 0 || r.Signal == 6
}
