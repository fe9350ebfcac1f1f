package nvml

import (
	"errors"
	"fmt"
	"strings"
)

// readInstances reads the MIG devices, and returns the handles with which they can be queried.
func (r reader) readInstances() []GPU {
	mode, err := r.gpu.Ask(QueryMIG, 0)
	if errors.Is(err, ErrNotSupported) || r.note(err, "mig", "instances") || mode.Numbers[0] != 1 {
		return nil // if MIG is not supported, it is off
	}
	r.d.MIG = true
	most, ok := r.ask(QueryInstances, "instances")
	if !ok {
		return nil
	}
	var parts []GPU
	for i := range integer(most.Numbers[0]) {
		part, err := r.gpu.Instance(i)
		if errors.Is(err, ErrNotFound) {
			continue // there may be gaps between the indices
		}
		if r.note(err, "instances") {
			continue
		}
		if instance, err := r.readInstance(part, i); !r.note(err, "instances") {
			r.d.Instances = append(r.d.Instances, instance)
			parts = append(parts, part)
		}
	}
	return parts
}

// readInstance returns an error if the instance has no id.
func (r reader) readInstance(part GPU, index int) (Instance, error) {
	gi, err := part.Ask(QueryGPUInstance, 0)
	if err != nil {
		return Instance{}, fmt.Errorf("GPU instance of MIG device %d: %w", index, err)
	}
	ci, err := part.Ask(QueryComputeInstance, 0)
	if err != nil {
		return Instance{}, fmt.Errorf("compute instance of MIG device %d: %w", index, err)
	}
	i := Instance{Index: index, GPUInstance: integer(gi.Numbers[0]), ComputeInstance: integer(ci.Numbers[0])}
	ask := func(q Query, what string) Answer {
		a, err := part.Ask(q, 0)
		if err != nil {
			r.note(fmt.Errorf("%s of MIG device %d: %w", what, index, err), "instances")
		}
		return a
	}
	if i.UUID = ask(QueryUUID, "UUID").Text; i.UUID == "" {
		i.UUID = fmt.Sprintf("MIG-%s/%d/%d", r.d.UUID, i.GPUInstance, i.ComputeInstance)
	}
	if _, profile, ok := strings.Cut(ask(QueryName, "name").Text, "MIG "); ok {
		i.Profile = profile
	}
	memory := ask(QueryMemory, "memory").Numbers
	i.MemoryTotal, i.MemoryUsed, i.MemoryFree = amount(memory[0]), amount(memory[1]), amount(memory[2])
	return i, nil
}
