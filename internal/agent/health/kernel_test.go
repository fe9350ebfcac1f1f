package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// recorded has lines that kernels have printed, from bug reports, mailing lists and manuals, and the sign of
// each; "" means none.
var recorded = []struct{ line, want string }{
	{"EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x12345 offset:0x0)", "ram-errors note: memory had an error that was corrected, at CPU_SrcID#0_MC#0_Chan#1_DIMM#0 of memory controller MC0"},
	{"EDAC MC0: 1 CE reserved error (16) on unknown label (node:0 rank:0 bank:0 row:0 col:0 page:0x400000 offset:0x300 grain:0 syndrome:0x0)", "ram-errors note: memory had an error that was corrected, at unknown label of memory controller MC0"},
	{"EDAC MC0: 1 UE Multi-bit ECC on unknown memory (node:0 card:1 module:71 bank:7 row:0 col:0 page:0x1000093 offset:0xc00 grain:1 - APEI location: node:0 card:257 module:71 )", "ram-errors error: memory has an error that could not be corrected, at unknown memory of memory controller MC0"},
	{"Memory failure: 0x1000093: recovery action for free buddy page: Recovered", "ram-errors warning: a page of broken memory (free buddy page) is taken out of use"},
	{"Memory failure: 0x36c1d: Sending SIGBUS to python:4711 due to hardware memory corruption", "ram-errors error: rank 3: process 4711 (python) is killed because of broken memory"},
	{"mce: [Hardware Error]: CPU 15: Machine Check Exception: 5 Bank 6: bb80000000000e0b", "ram-errors error: CPU 15 reports a hardware error that was not corrected, in bank 6"},
	{"mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: 9c00000000020e0f", "ram-errors note: CPU 0 reports a hardware error that was corrected, in bank 5"},
	{"mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 0: a000000000004321", "ram-errors error: CPU 0 reports a hardware error that was not corrected, in bank 0"},
	{"mce: [Hardware Error]: PROCESSOR 0:50654 TIME 1616567954 SOCKET 0 APIC 32 microcode 200005e", ""},
	{"mce: [Hardware Error]: Machine check events logged", "ram-errors note: the CPU reports machine checks"},
	{"{1}[Hardware Error]: event severity: corrected", "ram-errors note: the firmware reports a hardware error that was corrected"},
	{"{1}[Hardware Error]: event severity: fatal", "ram-errors error: the firmware reports a hardware error (fatal)"},

	{"I/O error, dev nvme0n1, sector 2623470496 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2", "disk-errors error: disk nvme0n1 has errors"},
	{"blk_update_request: I/O error, dev vda, sector 123456 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0", "disk-errors error: disk vda has errors"},
	{"print_req_error: I/O error, dev nvme0n1, sector 9240", "disk-errors error: disk nvme0n1 has errors"},
	{"blk_update_request: critical target error, dev nvme1n1, sector 0", "disk-errors error: disk nvme1n1 has errors"},
	{"blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0", "disk-errors note: drive fd0 has no readable medium"},
	{"Buffer I/O error on dev sdb1, logical block 0, async page read", "disk-errors error: disk sdb1 has errors"},
	{"EXT4-fs error (device vdb): htree_dirblock_to_tree:1038: inode #8193: block 4251: comm ls: bad entry in directory: directory entry too close to block end", "disk-errors error: the ext4 file system on vdb is damaged"},
	{"EXT4-fs (sda1): Remounting filesystem read-only", "disk-errors error: the file system on sda1 can no longer be written"},
	{"EXT4-fs (vda): mounted filesystem with ordered data mode. Quota mode: none.", ""},
	{"XFS (dm-3): Metadata corruption detected at xfs_attr3_leaf_verify+0x275/0x2e0, xfs_attr3_leaf block 0x19be8", "disk-errors error: the XFS file system on dm-3 is damaged or was shut down"},
	{"XFS (sdb1): Log I/O Error Detected. Shutting down filesystem", "disk-errors error: the XFS file system on sdb1 is damaged or was shut down"},
	{"XFS (sdb1): Mounting V5 Filesystem", ""},
	{"BTRFS error (device sda2): bdev /dev/sda2 errs: wr 0, rd 1, flush 0, corrupt 0, gen 0", "disk-errors error: the Btrfs file system on sda2 has errors"},
	{"nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", "disk-errors error: disk nvme0 does not respond"},
	{"nvme nvme0: Device not ready; aborting reset, CSTS=0x1", "disk-errors error: disk nvme0 does not respond"},
	{"nvme nvme2: Disabling device after reset failure: -19", "disk-errors error: disk nvme2 does not respond"},
	{"nvme nvme0: I/O tag 641 (c281) opcode 0x1 (I/O Cmd) QID 8 timeout, aborting req_op:WRITE(1) size:4096", "disk-errors warning: disk nvme0 did not respond in time"},
	{"nvme nvme0: 8/0/0 default/read/poll queues", ""},
	{"ata1.00: failed command: READ FPDMA QUEUED", "disk-errors warning: disk at ata1.00 has errors"},
	{"md/raid1:md127: Disk failure on sdb1, disabling device.", "disk-errors warning: disk sdb1 of the RAID md127 has failed"},
	{"nfs: server 10.100.0.60 not responding, still trying", "fs-frozen warning: NFS server 10.100.0.60 does not respond"},
	{"nfs: server 10.100.0.60 OK", ""},
	{"Lustre: scratch-OST0001-osc-ffff8800375e8800: Connection to scratch-OST0001 (at 10.1.1.5@o2ib) was lost; in progress operations using this service will wait for recovery to complete", "fs-frozen warning: the connection to Lustre's scratch-OST0001 is lost"},

	{"ixgbe 0000:04:00.1 ixgbe1: NIC Link is Down", "nic warning: the link of network interface ixgbe1 went down"},
	{"bnxt_en 0000:41:00.0 eno1np0: NIC Link is Down", "nic warning: the link of network interface eno1np0 went down"},
	{"ice 0000:31:00.0 ens1f0: NIC Link is Down", "nic warning: the link of network interface ens1f0 went down"},
	{"mlx5_core 0000:08:00.0 eth2: Link down", "nic warning: the link of network interface eth2 went down"},
	{"mlx5_core 0000:08:00.0 eth2: Link up", ""},
	{"e1000e: enp0s31f6 NIC Link is Down", "nic warning: the link of network interface enp0s31f6 went down"},
	{"e1000: eth0: e1000_watchdog: NIC Link is Down", "nic warning: the link of network interface eth0 went down"},
	{"tg3 0000:02:00.0 eth0: Link is down", "nic warning: the link of network interface eth0 went down"},
	{"ixgbe 0000:04:00.1 ixgbe1: NIC Link is Up 10 Gbps, Flow Control: RX/TX", ""},
	{"ata1: SATA link down (SStatus 0 SControl 300)", ""},
	{"bond0: (slave eth1): link status definitely down, disabling slave", "nic warning: the link of network interface eth1 went down"},
	{"NETDEV WATCHDOG: eth0 (r8169): transmit queue 0 timed out", "nic warning: network interface eth0 (r8169) no longer sends"},
	{"mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot (27W).", "nic warning: the network card at PCI 0000:5c:00.0 gets too little power"},
	{"mlx5_core 0000:0d:00.0: poll_health:801:(pid 0): device's health compromised - reached miss count", "nic warning: the network card at PCI 0000:0d:00.0 is broken by its own measure"},
	{"mlx5_core 0004:01:00.0: Port module event: module 0, Cable plugged", ""},
	{"pcieport 0000:b0:02.0: pciehp: Slot(3): Link Down", "pci error: the device in PCI slot 3 is gone"},

	{"watchdog: BUG: soft lockup - CPU#5 stuck for 26s! [bash:4711]", "cpu warning: rank 3: CPU 5 is stuck in the kernel, in process 4711 (bash)"},
	{"watchdog: BUG: soft lockup - CPU#11 stuck for 94s!", "cpu warning: CPU 11 is stuck in the kernel"},
	{"NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", "cpu error: CPU 3 is stuck in the kernel with interrupts off"},
	{"rcu: INFO: rcu_sched self-detected stall on CPU", "cpu warning: a CPU has been stuck for long (RCU stall)"},
	{"rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "cpu warning: a CPU has been stuck for long (RCU stall)"},
	{"CPU1: Core temperature above threshold, cpu clock throttled (total events = 1)", "cpu warning: the CPU is too hot and runs slower"},
	{"mce: CPU7: Package temperature above threshold, cpu clock throttled (total events = 1624)", "cpu warning: the CPU is too hot and runs slower"},
	{"CPU1: Core temperature/speed normal", ""},
	{"INFO: task kworker/13:2:4055883 blocked for more than 120 seconds.", "task-hung warning: process 4055883 (kworker/13:2) has waited in the kernel for minutes"},
	{"INFO: task python:4711 blocked for more than 122 seconds.", "task-hung warning: rank 3: process 4711 (python) has waited in the kernel for minutes"},

	{"Memory cgroup out of memory: Killed process 4711 (python3) total-vm:2178936kB, anon-rss:1045092kB, file-rss:2944kB, shmem-rss:0kB, UID:1000 pgtables:2156kB oom_score_adj:0", ""},
	{"Out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:1kB", "oom error: rank 3: the kernel has killed process 4711 (python3) because the host has no memory left"},
	{"Out of memory: Killed process 99 (java) total-vm:1kB, anon-rss:1kB", "oom error: the kernel has killed process 99 (java) because the host has no memory left"},
	{"pcieport 0000:80:01.0: AER: Corrected error received: 0000:8a:00.0", "pci note: the PCI link of 0000:8a:00.0 had errors that were corrected"},
	{"pcieport 0000:80:01.0: AER: Multiple Corrected error message received from 0000:8a:00.0", "pci note: the PCI link of 0000:8a:00.0 had errors that were corrected"},
	{"pcieport 0000:80:01.0: AER: Uncorrected (Fatal) error received: 0000:8a:00.0", "pci error: the PCI link of 0000:8a:00.0 had an error that was not corrected (Fatal)"},

	{"python3[4711]: segfault at 0 ip 00007f sp 00007f error 4 in libtorch.so[7f+1]", ""},
	{"IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready", ""},
	{"docker0: port 1(veth12ab) entered disabled state", ""},
	{"hrtimer: interrupt took 42698779 ns", ""},
	{"", ""},
}

func TestKernelLines(t *testing.T) {
	for _, c := range recorded {
		s, found := signOf(c.line, map[int]int{4711: 3})
		got := ""
		if found {
			got = fmt.Sprintf("%s %s: %s", s.Sign, s.Severity, s.Text)
			if s.Hint == "" {
				t.Errorf("%s: there is no hint", c.line)
			}
			if strings.Contains(s.Text, "rank 3") != (len(s.Ranks) == 1) {
				t.Errorf("%s: ranks %v", c.line, s.Ranks)
			}
		}
		if got != c.want {
			t.Errorf("%s\ngot  %q\nwant %q", c.line, got, c.want)
		}
	}
	for i := range kernelRules { // every rule must match a line
		r := &kernelRules[i]
		tried := false
		for _, c := range recorded {
			first := false
			for j := range kernelRules {
				if o := &kernelRules[j]; strings.Contains(c.line, o.word) && o.pattern().MatchString(c.line) {
					first = i == j
					break
				}
			}
			tried = tried || first
		}
		if !tried && r.word != "Port module event" {
			t.Errorf("no recorded line is of the rule %q", r.what)
		}
	}
}

// TestRepeats checks that equal signs of the kernel's log are counted, and reported at counts of 1, 10 and
// 100 and at the end. Numbers in the lines that do not matter may differ.
func TestRepeats(t *testing.T) {
	j := NewJudge()
	var told []Sign
	at := time.Unix(0, 0)
	for i := range 123 {
		told = append(told, j.Judge(at, Sample{Kernel: []string{
			fmt.Sprintf("I/O error, dev sda, sector %d op 0x0:(READ)", i), "mlx5_core 0000:08:00.0 eth2: Link up",
		}})...)
	}
	told = append(told, j.Judge(at, Sample{Kernel: []string{"I/O error, dev sdb, sector 1 op 0x0:(READ)"}})...)
	told = append(told, j.Rest()...)
	var counts []string
	for _, s := range told {
		if s.Sign != job.HealthDisk {
			t.Errorf("%+v", s)
		}
		counts = append(counts, fmt.Sprint(s.Count, " ", s.Text))
	}
	want := []string{
		"0 disk sda has errors: I/O error, dev sda, sector 0 op 0x0:(READ)",
		"10 disk sda has errors; 10 times so far: I/O error, dev sda, sector 9 op 0x0:(READ)",
		"100 disk sda has errors; 100 times so far: I/O error, dev sda, sector 99 op 0x0:(READ)",
		"0 disk sdb has errors: I/O error, dev sdb, sector 1 op 0x0:(READ)",
		"123 disk sda has errors; 123 times so far",
	}
	if strings.Join(counts, "\n") != strings.Join(want, "\n") {
		t.Errorf("told\n%s", strings.Join(counts, "\n"))
	}
	for i := range 2 * maxKernel { // the number of different signs is bounded
		told = append(told, j.Judge(at, Sample{Kernel: []string{fmt.Sprintf("I/O error, dev sd%d, sector 1", i)}})...)
	}
	if len(told) > maxKernel+10 {
		t.Errorf("%d signs", len(told))
	}
}

func FuzzKernelLines(f *testing.F) {
	for _, c := range recorded {
		f.Add(c.line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if s, found := signOf(line, nil); found && (s.Text == "" || s.Hint == "" || s.Sign == "" || strings.ContainsAny(s.Text, "\n\x1b")) {
			t.Fatalf("%q: %+v", line, s)
		}
	})
}
