package topology

import (
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// machine returns a host from a table as nvidia-smi topo -m prints it. Each line has a GPU, its links to the
// GPUs, and its links to the NICs.
func machine(name, table string) job.Host {
	h := job.Host{Name: name, Rack: "", Slots: 64}
	lines := strings.Split(strings.TrimSpace(table), "\n")
	for i, line := range lines {
		h.Devices = append(h.Devices, job.Device{UUID: fmt.Sprintf("%s-GPU%d", name, i), Index: i, CPUs: fmt.Sprintf("%d-%d", 8*i, 8*i+7)})
		var links []job.Link
		for j, word := range strings.Fields(line) {
			if word == "X" || word == "-" {
				word = ""
			}
			if j < len(lines) {
				links = append(links, job.Link(word))
				continue
			}
			if n := j - len(lines); n == len(h.NICs) {
				h.NICs = append(h.NICs, job.NIC{Name: fmt.Sprintf("mlx5_%d", n)})
			}
			h.NICs[j-len(lines)].Links = append(h.NICs[j-len(lines)].Links, job.Link(word))
		}
		h.Links = append(h.Links, links)
	}
	return h
}

// dgx1v returns the hybrid cube mesh of NVIDIA's DGX-1 with V100s.
func dgx1v(name string) job.Host {
	return machine(name, `
X   NV1 NV1 NV2 NV2 SYS SYS SYS  PIX PHB SYS SYS
NV1 X   NV2 NV1 SYS NV2 SYS SYS  PIX PHB SYS SYS
NV1 NV2 X   NV2 SYS SYS NV1 SYS  PHB PIX SYS SYS
NV2 NV1 NV2 X   SYS SYS SYS NV1  PHB PIX SYS SYS
NV2 SYS SYS SYS X   NV1 NV1 NV2  SYS SYS PIX PHB
SYS NV2 SYS SYS NV1 X   NV2 NV1  SYS SYS PIX PHB
SYS SYS NV1 SYS NV1 NV2 X   NV2  SYS SYS PHB PIX
SYS SYS SYS NV1 NV2 NV1 NV2 X    SYS SYS PHB PIX`)
}

// grid returns a machine with the given numbers of GPUs and NICs. link and nic return the links.
func grid(name string, gpus, nics int, link func(i, j int) string, nic func(i, nic int) string) job.Host {
	var table strings.Builder
	for i := range gpus {
		for j := range gpus {
			if i == j {
				table.WriteString("X ")
			} else {
				table.WriteString(link(i, j) + " ")
			}
		}
		for n := range nics {
			table.WriteString(nic(i, n) + " ")
		}
		table.WriteString("\n")
	}
	return machine(name, table.String())
}

// nvswitch returns eight GPUs, of which each pair is connected by the same number of NVLinks. The NICs are as
// in the DGX-A100 (pairs behind one switch) or, if each is true, as in the HGX-H100 (one for each GPU).
func nvswitch(name string, links int, each bool) job.Host {
	return grid(name, 8, 8, func(i, j int) string { return fmt.Sprint("NV", links) }, func(i, nic int) string {
		switch {
		case each && nic == i:
			return "PIX"
		case !each && nic/2 == i/2:
			return "PXB"
		case nic/4 == i/4:
			return "NODE"
		}
		return "SYS"
	})
}

func dgxA100(name string) job.Host { return nvswitch(name, 12, false) }
func hgxH100(name string) job.Host { return nvswitch(name, 18, true) }

// pairs returns four PCIe GPUs on two sockets, with NVLink bridges between two GPUs each.
func pairs(name string) job.Host {
	return machine(name, `
X   NV4 SYS SYS  PHB
NV4 X   SYS SYS  PHB
SYS SYS X   NV4  SYS
SYS SYS NV4 X    SYS`)
}

// pcie returns eight PCIe GPUs on two sockets. On the first socket, they are behind several switches. On the
// second one, they are behind several host bridges.
func pcie(name string) job.Host {
	return machine(name, `
X   PIX PXB PXB  SYS SYS SYS SYS   PXB
PIX X   PXB PXB  SYS SYS SYS SYS   PXB
PXB PXB X   PIX  SYS SYS SYS SYS   PIX
PXB PXB PIX X    SYS SYS SYS SYS   PIX
SYS SYS SYS SYS  X   PIX NODE NODE SYS
SYS SYS SYS SYS  PIX X   NODE NODE SYS
SYS SYS SYS SYS  NODE NODE X   PIX SYS
SYS SYS SYS SYS  NODE NODE PIX X   SYS`)
}

// sliced returns three A100s. The first is divided into three MIG instances, the second into two, and the third
// is whole.
func sliced(name string) job.Host {
	h := machine(name, `
X   PSB PSB PSB NODE NODE NODE NODE PIX
PSB X   PSB PSB NODE NODE NODE NODE PIX
PSB PSB X   PSB NODE NODE NODE NODE PIX
PSB PSB PSB X   NODE NODE NODE NODE PIX
NODE NODE NODE NODE X PSB PSB PXB NODE
NODE NODE NODE NODE PSB X PSB PXB NODE
NODE NODE NODE NODE PSB PSB X PXB NODE
NODE NODE NODE NODE PXB PXB PXB X NODE`)
	for _, i := range []int{1, 2, 3} {
		h.Devices[i].GPU = h.Devices[0].UUID
	}
	for _, i := range []int{5, 6} {
		h.Devices[i].GPU = h.Devices[4].UUID
	}
	return h
}

// sixteen returns two boards of eight GPUs on one NVSwitch fabric, as in the DGX-2. The fabric between the
// boards has half the links.
func sixteen(name string) job.Host {
	return grid(name, 16, 0, func(i, j int) string {
		if i/8 == j/8 {
			return "NV6"
		}
		return "NV3"
	}, nil)
}

// cut returns eight GPUs with seven MIG instances each. GPU i is device 8i, and its instances are the devices
// after it.
func cut(name string) job.Host {
	h := grid(name, 64, 0, func(i, j int) string {
		switch {
		case i/8 == j/8:
			return "PSB"
		case i/32 == j/32:
			return "NODE"
		}
		return "SYS"
	}, nil)
	for i := range h.Devices {
		if i%8 > 0 {
			h.Devices[i].GPU = h.Devices[i/8*8].UUID
		}
	}
	return h
}

// named has the machines with their names.
var named = []struct {
	name string
	make func(string) job.Host
}{
	{"DGX-1V", dgx1v}, {"DGX-A100", dgxA100}, {"HGX-H100", hgxH100},
	{"4x PCIe, NVLink pairs", pairs}, {"8x PCIe, two sockets", pcie}, {"MIG", sliced},
}

// busy marks GPUs of a host as busy.
func busy(h job.Host, indices ...int) job.Host {
	for _, i := range indices {
		h.Devices[i].Busy = fmt.Sprintf("run %d of ann", i)
	}
	return h
}

// in puts a host into a rack, below a switch.
func in(h job.Host, rack, sw string) job.Host {
	h.Rack, h.Switch = rack, sw
	return h
}
