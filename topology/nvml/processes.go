package nvml

import "errors"

// readProcesses asks the GPU for its processes. If the GPU cannot answer, it asks the GPU's MIG
// devices.
func (r reader) readProcesses(parts []GPU) {
	for _, kind := range []struct {
		q   Query
		typ string
	}{{QueryCompute, "C"}, {QueryGraphics, "G"}, {QueryMPS, "M+C"}} {
		found, err := r.gpu.Processes(kind.q)
		if err != nil && len(parts) > 0 {
			found, err = r.partProcesses(kind.q, parts)
		}
		if err != nil && (kind.q == QueryCompute || !errors.Is(err, ErrNotSupported)) {
			r.note(err, "processes") // the processes that were found are still right
		}
		for _, p := range found {
			p.Type = kind.typ
			r.d.Processes = merge(r.d.Processes, p)
		}
	}
}

func (r reader) partProcesses(q Query, parts []GPU) (all []Process, first error) {
	for i, part := range parts {
		found, err := part.Processes(q)
		if err != nil && first == nil {
			first = err
		}
		for _, p := range found {
			p.GPUInstance, p.ComputeInstance = &r.d.Instances[i].GPUInstance, &r.d.Instances[i].ComputeInstance
			all = append(all, p)
		}
	}
	return all, first
}

// merge adds p to the processes, or completes the entry that they have for it.
func merge(all []Process, p Process) []Process {
	same := func(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	for i := range all {
		known := &all[i]
		if known.PID != p.PID || !same(known.GPUInstance, p.GPUInstance) || !same(known.ComputeInstance, p.ComputeInstance) {
			continue
		}
		if known.Memory = max(known.Memory, p.Memory); known.Type != p.Type {
			switch p.Type {
			case "G":
				known.Type = "C+G"
			case "M+C":
				known.Type = "M+C"
			}
		}
		return all
	}
	return append(all, p)
}
