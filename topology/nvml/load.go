//go:build cgo && linux

package nvml

import (
	nv "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// askLoad answers the queries about the present load and state of a GPU.
func (d device) askLoad(q Query, n int) (Answer, error) {
	switch q {
	case QueryPower:
		milliwatts, ret := d.GetPowerUsage()
		return numbers(ret, milliwatts)
	case QueryClock:
		mhz, ret := d.GetClockInfo(nv.CLOCK_SM)
		return numbers(ret, mhz)
	case QueryTemperature:
		degrees, ret := d.GetTemperature(nv.TEMPERATURE_GPU)
		return numbers(ret, degrees)
	case QueryPCILink:
		return all(d.GetCurrPcieLinkGeneration, d.GetCurrPcieLinkWidth, d.GetMaxPcieLinkGeneration, d.GetMaxPcieLinkWidth)
	case QueryLinkErrors:
		counter := func(c nv.NvLinkErrorCounter) func() (uint64, nv.Return) {
			return func() (uint64, nv.Return) { return d.GetNvLinkErrorCounter(n, c) }
		}
		return all(counter(nv.NVLINK_ERROR_DL_REPLAY), counter(nv.NVLINK_ERROR_DL_RECOVERY), counter(nv.NVLINK_ERROR_DL_CRC_FLIT), counter(nv.NVLINK_ERROR_DL_CRC_DATA))
	}
	return Answer{}, unknown(q)
}

// all returns the numbers of several calls as one Answer.
func all[T ~int | ~uint64](calls ...func() (T, nv.Return)) (a Answer, err error) {
	for i, call := range calls {
		value, ret := call()
		if err := failed(ret); err != nil {
			return Answer{}, err
		}
		a.Numbers[i] = uint64(value)
	}
	return a, nil
}
