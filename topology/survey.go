package topology

import (
	"encoding/binary"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// view is a host as one gang can use it.
type view struct {
	host *job.Host
	at   int // in the inventory
	*state
	// usable has the GPUs that the gang could have if no GPU were busy.
	usable set
	rack   int
	sw     int
}

// survey has the hosts that have GPUs for a gang. Hosts that look the same share their data.
type survey struct {
	want  Want
	views []view
	racks int
	// unfit is the number of devices that are sick or excluded, or on an excluded host. slices is the number of
	// MIG instances that cannot be used because a rank needs several GPUs.
	unfit, slices int
	// best caches the results of shape.bestJoined.
	best map[stateKey]joined
	// orders caches the results of order.
	orders map[stateKey][][]int
}

// look returns a survey of an inventory. If idle is true, it takes no GPU as busy.
func look(want Want, inventory job.Inventory, not job.Excluded, idle bool) *survey {
	s := &survey{want: want, best: map[stateKey]joined{}, orders: map[stateKey][][]int{}}
	gone := words(not.Hosts)
	shapes, states := map[string]*shape{}, map[stateKey]*state{}
	racks, switches := map[string]int{}, map[[2]string]int{}
	var key []byte
	for at := range inventory.Hosts {
		h := &inventory.Hosts[at]
		if gone[h.Name] || len(h.Devices) == 0 {
			s.unfit += len(h.Devices)
			continue
		}
		whole := whole(h)
		key = shapeKey(key[:0], h, whole)
		shape := shapes[string(key)]
		if shape == nil {
			shape = newShape(decode(key, len(whole)))
			shapes[string(key)] = shape
		}
		v := view{host: h, at: at}
		var free set
		for i, d := range whole {
			if unfit(h, d, not.Devices) {
				s.unfit++
				continue
			}
			if want.GPUs > 1 && isSlice(&h.Devices[d]) {
				s.slices++
				continue
			}
			v.usable.add(i)
			if idle || h.Devices[d].Busy == "" {
				free.add(i)
			}
		}
		k := stateKey{shape, free, free.count() / want.GPUs}
		if h.Hard {
			k.cap = min(k.cap, max(0, h.Slots))
		}
		v.state = states[k]
		if v.state == nil {
			v.state = newState(k, want.GPUs, want.Ranks, want.Ranks*want.GPUs == 1)
			states[k] = v.state
		}
		v.rack = number(racks, h.Rack)
		v.sw = number(switches, [2]string{h.Rack, h.Switch})
		s.views = append(s.views, v)
	}
	s.racks = len(racks)
	return s
}

// whole returns the indices in h.Devices of the devices that can be given to a gang.
func whole(h *job.Host) []int {
	list := Leaves(*h)
	return list[:min(len(list), widest)]
}

// isSlice reports whether a device is a MIG instance.
func isSlice(d *job.Device) bool { return d.GPU != "" && d.GPU != d.UUID }

// unfit reports whether the gang may not have a device even if the device is idle. This is so if the device, or
// the GPU to which it belongs, is sick or excluded. It does not matter whether that GPU is busy, because a
// program on any of its instances makes it busy.
func unfit(h *job.Host, device int, gone []string) bool {
	d := &h.Devices[device]
	if d.Sick != "" || (job.Excluded{Devices: gone}).Device(h.Name, *d) {
		return true
	}
	return d.GPU != "" && slices.ContainsFunc(h.Devices, func(p job.Device) bool { return p.UUID == d.GPU && p.Sick != "" })
}

// shapeKey appends to key what distinguishes one shape from another: the score of every
// pair of GPUs, then the distance of every GPU to a NIC.
func shapeKey(key []byte, h *job.Host, whole []int) []byte {
	for i, a := range whole {
		for _, b := range whole[:i] {
			var v int32
			if a < len(h.Links) && b < len(h.Links[a]) {
				v = score(h.Links[a][b])
			}
			key = binary.LittleEndian.AppendUint16(key, uint16(v))
		}
	}
	for _, a := range whole {
		key = append(key, byte(distance(nearest(h, a))))
	}
	return key
}

// decode is the reverse of shapeKey.
func decode(key []byte, n int) ([][]int32, []int32) {
	scores, nic := make([][]int32, n), make([]int32, n)
	for i := range n {
		scores[i] = make([]int32, n)
		for j := range i {
			v := int32(binary.LittleEndian.Uint16(key))
			key = key[2:]
			scores[i][j], scores[j][i] = v, v
		}
	}
	for i := range n {
		nic[i] = int32(key[i])
	}
	return scores, nic
}

// number returns the number of a name. It gives each new name the next number, from 0 on.
func number[K comparable](numbers map[K]int, name K) int {
	n, ok := numbers[name]
	if !ok {
		n = len(numbers)
		numbers[name] = n
	}
	return n
}

func words(list []string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, w := range list {
		m[w] = true
	}
	return m
}
