package nvml

import (
	"errors"
	"time"
)

// Sample is the load and the state of a GPU at one moment. A value is 0 if the GPU or the driver does not have
// it.
type Sample struct {
	Utilisation int `json:"utilisation"` // percent of the time in which a kernel ran
	Memory      int `json:"memory"`      // percent of the time in which device memory was read or written
	Power       int `json:"power"`       // watts
	SMClock     int `json:"sm_clock"`    // MHz
	Temperature int `json:"temperature"` // degrees Celsius
	// Throttle has the reasons why the clocks are not at their maximum, as in Device.
	Throttle []string `json:"throttle,omitempty"`
	// Generation and Width are the present generation and width of the PCIe link. LargestGeneration and
	// LargestWidth are the largest that both the GPU and its slot support. An idle GPU may lower the generation
	// to save power.
	Generation        int          `json:"generation"`
	Width             int          `json:"width"`
	LargestGeneration int          `json:"largest_generation"`
	LargestWidth      int          `json:"largest_width"`
	Remapped          RemappedRows `json:"remapped_rows,omitzero"`
	Retired           RetiredPages `json:"retired_pages,omitzero"`
	Recovery          string       `json:"recovery,omitempty"` // as in Device
	// LinkErrors counts the errors of all NVLinks since the driver was loaded. It is read once a
	// minute.
	LinkErrors LinkErrors `json:"link_errors,omitzero"`
}

// LinkErrors counts errors of NVLinks.
type LinkErrors struct {
	Replays    int64 `json:"replays,omitempty"`
	Recoveries int64 `json:"recoveries,omitempty"` // recoveries of a link that had failed
	CRC        int64 `json:"crc,omitempty"`
}

// linkEvery is the time between two looks at the error counters of NVLinks. A GPU has up to 18
// links, and each call takes long.
const linkEvery = time.Minute

// sampled has what earlier samples have shown about a GPU.
type sampled struct {
	links   LinkErrors
	looked  time.Time      // when the links were read
	missing map[Query]bool // queries that the GPU cannot answer
	lost    bool
}

// sample queries the load and the state of a GPU. ok is false if the GPU answers nothing, or if it is lost. err
// is set if it is lost.
func (s *sampled) sample(now time.Time, g GPU) (v Sample, ok bool, err error) {
	ask := func(q Query) (numbers [4]uint64, answered bool) {
		if s.missing[q] {
			return numbers, false
		}
		a, failed := g.Ask(q, 0)
		switch {
		case errors.Is(failed, ErrLost):
			err = failed
		case errors.Is(failed, ErrNotSupported):
			s.missing[q] = true
		}
		ok = ok || failed == nil
		return a.Numbers, failed == nil
	}
	if n, answered := ask(QueryUtilisation); answered {
		v.Utilisation, v.Memory = integer(n[0]), integer(n[1])
	}
	if n, answered := ask(QueryPower); answered {
		v.Power = integer(n[0] / 1000)
	}
	if n, answered := ask(QueryClock); answered {
		v.SMClock = integer(n[0])
	}
	if n, answered := ask(QueryTemperature); answered {
		v.Temperature = integer(n[0])
	}
	if n, answered := ask(QueryThrottle); answered {
		v.Throttle = throttle(n[0])
	}
	if n, answered := ask(QueryPCILink); answered {
		v.Generation, v.Width, v.LargestGeneration, v.LargestWidth = integer(n[0]), integer(n[1]), integer(n[2]), integer(n[3])
	}
	if n, answered := ask(QueryRemapped); answered {
		v.Remapped = RemappedRows{integer(n[0]), integer(n[1]), n[2] != 0, n[3] != 0}
	}
	if n, answered := ask(QueryRetired); answered {
		v.Retired = RetiredPages{integer(n[0]), integer(n[1]), n[2] != 0}
	}
	if n, answered := ask(QueryRecovery); answered {
		v.Recovery = recovery(n[0])
	}
	if ok && err == nil && now.Sub(s.looked) >= linkEvery {
		s.looked, s.links = now, linkErrors(g)
	}
	v.LinkErrors = s.links
	return v, ok && err == nil, err
}

// linkErrors adds up the error counters of all NVLinks of a GPU.
func linkErrors(g GPU) (sum LinkErrors) {
	for n := range maxNVLinks {
		state, err := g.Ask(QueryLink, n)
		if errors.Is(err, ErrNotFound) {
			break
		}
		if err != nil || state.Numbers[0] != 1 {
			continue
		}
		a, err := g.Ask(QueryLinkErrors, n)
		if errors.Is(err, ErrNotSupported) {
			break
		}
		if err == nil {
			sum.Replays += int64(a.Numbers[0])
			sum.Recoveries += int64(a.Numbers[1])
			sum.CRC += int64(a.Numbers[2]) + int64(a.Numbers[3])
		}
	}
	return sum
}
