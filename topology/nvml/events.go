//go:build cgo && linux

package nvml

import (
	"fmt"
	"time"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// events is an event set.
type events struct {
	nv.EventSet
	lib library
}

// kinds has the events that are reported.
var kinds = map[uint64]EventKind{
	nv.EventTypeXidCriticalError:  EventXID,
	nv.EventTypeSingleBitEccError: EventECCSingle,
	nv.EventTypeDoubleBitEccError: EventECCDouble,
}

func (e events) Add(g GPU) error {
	d, ok := g.(device)
	if !ok {
		return &problem{fmt.Sprintf("%T is no GPU of this driver", g), ErrNotFound}
	}
	supported, ret := d.GetSupportedEventTypes()
	if err := failed(ret); err != nil {
		return err
	}
	var wanted uint64
	for kind := range kinds {
		wanted |= kind & supported
	}
	if wanted == 0 {
		return &problem{"it reports neither XID nor ECC events", ErrNotSupported}
	}
	return failed(d.RegisterEvents(wanted, e.EventSet))
}

func (e events) Wait(limit time.Duration) (Occurrence, error) {
	deadline := time.Now().Add(limit)
	for {
		data, ret := e.EventSet.Wait(uint32(max(0, time.Until(deadline).Milliseconds())))
		if err := failed(ret); err != nil {
			return Occurrence{}, err
		}
		kind, wanted := kinds[data.EventType]
		if !wanted {
			continue // the set was not registered for this event
		}
		o := Occurrence{GPU: device{data.Device, e.lib}, Kind: kind, Data: data.EventData}
		if e.lib.has("nvmlEventSetWait_v2") == nil { // drivers before MIG leave the IDs unset
			o.GPUInstance, o.ComputeInstance = part(data.GpuInstanceId), part(data.ComputeInstanceId)
		}
		return o, nil
	}
}

func (e events) Free() error { return failed(e.EventSet.Free()) }
