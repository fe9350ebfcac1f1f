package health

import "github.com/gangrun/gangrun/internal/job"

const (
	hintRAM    = "have the memory module replaced if this goes on; until then, leave the host out"
	hintDisk   = "checkpoints and data on it may be damaged: look at smartctl -a and dmesg, and leave the host out until it is repaired"
	hintServer = "ranks that read or write there wait until it answers: look at the server and the network to it"
	hintNIC    = "check the cable, the transceiver and the port of the switch: ranks that use this link wait or fail"
	hintCPU    = "look for the program or driver that dmesg names; if it comes again, leave the host out"
	hintHeat   = "ranks on this host are slower, and others wait for them: look at its fans and its air"
	hintPCI    = "reseat or replace the device if this goes on; until then, leave the host out"
)

// kernelRules describes the lines that are signs that something is wrong with the host. The first rule that matches a
// line counts.
var kernelRules = []kernelRule{
	// Memory: drivers/edac/edac_mc.c, mm/memory-failure.c, arch/x86/kernel/cpu/mce,
	// drivers/firmware/efi/cper.c.
	{sign: job.HealthRAM, severity: job.SeverityError, word: "EDAC ", pattern: form(`EDAC (MC\d+): \d+ UE (?:.* on )?([^(]*?) ?(?:\(|$)`),
		what: "memory has an error that could not be corrected, at $2 of memory controller $1", hint: "have the memory module replaced, and leave the host out: results computed there may be wrong"},
	{sign: job.HealthRAM, severity: job.SeverityNote, word: "EDAC ", pattern: form(`EDAC (MC\d+): \d+ CE (?:.* on )?([^(]*?) ?(?:\(|$)`),
		what: "memory had an error that was corrected, at $2 of memory controller $1", hint: hintRAM},
	{sign: job.HealthRAM, severity: job.SeverityError, word: "Memory failure: ", pattern: form(`Memory failure: 0x[0-9a-f]+: (?:Killing|Sending SIGBUS to) (.*?):(\d+) due to hardware memory corruption`), pid: 2,
		what: "process $2 ($1) is killed because of broken memory", hint: "have the memory module replaced, and leave the host out"},
	{sign: job.HealthRAM, severity: job.SeverityWarning, word: "Memory failure: ", pattern: form(`Memory failure: 0x[0-9a-f]+: recovery action for (.*): (?:Recovered|Delayed|Failed|Ignored)`),
		what: "a page of broken memory ($1) is taken out of use", hint: hintRAM},
	{sign: job.HealthRAM, severity: job.SeverityError, word: "[Hardware Error]: CPU ", pattern: form(`\[Hardware Error\]: CPU (\d+): Machine Check(?: Exception)?: [0-9a-f]+ Bank (\d+): [2367abef][0-9a-f]{15}`),
		what: "CPU $1 reports a hardware error that was not corrected, in bank $2", hint: "leave the host out until its vendor has looked at it; rasdaemon or mcelog decode the error"},
	{sign: job.HealthRAM, severity: job.SeverityNote, word: "[Hardware Error]: CPU ", pattern: form(`\[Hardware Error\]: CPU (\d+): Machine Check(?: Exception)?: [0-9a-f]+ Bank (\d+): [0-9a-f]{16}`),
		what: "CPU $1 reports a hardware error that was corrected, in bank $2", hint: "rasdaemon or mcelog decode the error"},
	{sign: job.HealthRAM, severity: job.SeverityNote, word: "Machine check events logged", pattern: form(`Machine check events logged`),
		what: "the CPU reports machine checks", hint: "rasdaemon or mcelog decode them"},
	{sign: job.HealthRAM, severity: job.SeverityNote, word: "[Hardware Error]: event severity", pattern: form(`\[Hardware Error\]: event severity: (?:corrected|info)`),
		what: "the firmware reports a hardware error that was corrected", hint: "dmesg says which part it concerns"},
	{sign: job.HealthRAM, severity: job.SeverityError, word: "[Hardware Error]: event severity", pattern: form(`\[Hardware Error\]: event severity: (recoverable|fatal)`),
		what: "the firmware reports a hardware error ($1)", hint: "dmesg says which part it concerns; leave the host out until it is repaired"},

	// Disks and file systems: block/blk-core.c, fs/ext4/super.c, fs/xfs, fs/btrfs, drivers/nvme/host/pci.c,
	// drivers/ata, drivers/md.
	{sign: job.HealthDisk, severity: job.SeverityNote, word: "error, dev ", pattern: form(`error, dev (fd\d+|sr\d+),`),
		what: "drive $1 has no readable medium", hint: "a floppy or optical drive: it does not matter for a job"},
	{sign: job.HealthDisk, severity: job.SeverityError, word: "error, dev ", pattern: form(`(?:I/O|critical medium|critical target|critical nexus|protection|timeout) error, dev ([\w.-]+),`),
		what: "disk $1 has errors", hint: hintDisk},
	{sign: job.HealthDisk, severity: job.SeverityError, word: "Buffer I/O error on dev", pattern: form(`Buffer I/O error on dev(?:ice)? ([\w.-]+),`),
		what: "disk $1 has errors", hint: hintDisk},
	{sign: job.HealthDisk, severity: job.SeverityError, word: "EXT4-fs error", pattern: form(`EXT4-fs error \(device ([^)]+)\)`),
		what: "the ext4 file system on $1 is damaged", hint: hintDisk},
	{sign: job.HealthDisk, severity: job.SeverityError, word: "Remounting filesystem read-only", pattern: form(`\(([^)]+)\): Remounting filesystem read-only`),
		what: "the file system on $1 can no longer be written", hint: hintDisk},
	{sign: job.HealthDisk, severity: job.SeverityError, word: "XFS (", pattern: form(`XFS \(([^)]+)\): (?i:Metadata (?:corruption|I/O error|CRC error)|Corruption |Internal error|log I/O error|.*[Ss]hutting down filesystem|.*Filesystem has been shut down)`),
		what: "the XFS file system on $1 is damaged or was shut down", hint: hintDisk},
	{sign: job.HealthDisk, severity: job.SeverityError, word: "BTRFS", pattern: form(`BTRFS (?:error|critical):? \(device ([^)]+)\)`),
		what: "the Btrfs file system on $1 has errors", hint: hintDisk},
	{sign: job.HealthDisk, severity: job.SeverityError, word: "nvme", pattern: form(`(nvme\d+): (?:controller is down; will reset|Device not ready; aborting reset|Disabling device after reset failure|Removing after probe failure)`),
		what: "disk $1 does not respond", hint: hintDisk},
	{sign: job.HealthDisk, severity: job.SeverityWarning, word: "nvme", pattern: form(`(nvme\d+): .*timeout, (?:reset controller|aborting|disable controller)`),
		what: "disk $1 did not respond in time", hint: hintDisk},
	{sign: job.HealthDisk, severity: job.SeverityWarning, word: "ata", pattern: form(`\b(ata\d+(?:\.\d+)?): (?:exception Emask|failed command:)`),
		what: "disk at $1 has errors", hint: hintDisk},
	{sign: job.HealthDisk, severity: job.SeverityWarning, word: "Disk failure on ", pattern: form(`md/\w+:(\w+): Disk failure on (\S+?),`),
		what: "disk $2 of the RAID $1 has failed", hint: "have the disk replaced: another failure may lose what is on it"},
	// File servers: net/sunrpc/clnt.c, Lustre's ptlrpc/import.c, net/ceph.
	{sign: job.HealthFrozen, severity: job.SeverityWarning, word: "not responding, ", pattern: form(`nfs: server (\S+) not responding, (?:still trying|timed.out)`),
		what: "NFS server $1 does not respond", hint: hintServer},
	{sign: job.HealthFrozen, severity: job.SeverityWarning, word: "Lustre: ", pattern: form(`Lustre: .*Connection to (\S+) \(at \S+\) was lost`),
		what: "the connection to Lustre's $1 is lost", hint: hintServer},

	// Networks.
	{sign: job.HealthNIC, severity: job.SeverityWarning, word: "ink ", pattern: form(`(?:^|\s)([A-Za-z][\w.@-]*)(?:: (?:\w+_watchdog: )?(?:NIC )?[Ll]ink| NIC Link) (?:is )?[Dd]own\b`),
		what: "the link of network interface $1 went down", hint: hintNIC},
	{sign: job.HealthNIC, severity: job.SeverityWarning, word: "definitely down", pattern: form(`link status definitely down for (?:interface|active interface) ([^\s,]+)|\(slave ([^)]+)\): link status definitely down`),
		what: "the link of network interface $1$2 went down", hint: hintNIC},
	{sign: job.HealthNIC, severity: job.SeverityWarning, word: "NETDEV WATCHDOG", pattern: form(`NETDEV WATCHDOG: (\S+) \((\w+)\)`),
		what: "network interface $1 ($2) no longer sends", hint: hintNIC},
	{sign: job.HealthNIC, severity: job.SeverityWarning, word: "Port module event", pattern: form(`mlx5_core (\S+?):? .*Port module event\[error\]: module (\d+), Cable error`),
		what: "the cable at port $2 of the network card at PCI $1 has an error", hint: hintNIC},
	{sign: job.HealthNIC, severity: job.SeverityWarning, word: "mlx5_core", pattern: form(`mlx5_core (\S+?):? .*(?:device's health compromised|Health issue observed|health recovery (?:flow )?(?:aborted|failed))`),
		what: "the network card at PCI $1 is broken by its own measure", hint: hintPCI},
	{sign: job.HealthNIC, severity: job.SeverityWarning, word: "insufficient power", pattern: form(`mlx5_core (\S+?):? .*Detected insufficient power on the PCIe slot`),
		what: "the network card at PCI $1 gets too little power", hint: hintPCI},

	// CPUs: kernel/watchdog.c, kernel/rcu/tree_stall.h, arch/x86 therm_throt.c, kernel/hung_task.c.
	{sign: job.HealthCPU, severity: job.SeverityWarning, word: "soft lockup", pattern: form(`BUG: soft lockup - CPU#(\d+) stuck for \d+ ?s(?:econds)?!? \[(.*):(\d+)\]`), pid: 3,
		what: "CPU $1 is stuck in the kernel, in process $3 ($2)", hint: hintCPU},
	{sign: job.HealthCPU, severity: job.SeverityWarning, word: "lockup", pattern: form(`BUG: soft lockup - CPU#(\d+) stuck`),
		what: "CPU $1 is stuck in the kernel", hint: hintCPU},
	{sign: job.HealthCPU, severity: job.SeverityError, word: "hard LOCKUP", pattern: form(`(?i)hard LOCKUP on cpu ?(\d+)`),
		what: "CPU $1 is stuck in the kernel with interrupts off", hint: hintCPU},
	{sign: job.HealthCPU, severity: job.SeverityWarning, word: "detected ", pattern: form(`INFO: rcu\w* (?:self-)?detected (?:expedited )?stalls? on CPUs?`),
		what: "a CPU has been stuck for long (RCU stall)", hint: hintCPU},
	{sign: job.HealthCPU, severity: job.SeverityWarning, word: "temperature above threshold", pattern: form(`(?:Core|Package) temperature above threshold, cpu clock (?:is )?throttled`),
		what: "the CPU is too hot and runs slower", hint: hintHeat},
	{sign: job.HealthTask, severity: job.SeverityWarning, word: "blocked for more than ", pattern: form(`INFO: task (.*):(\d+) blocked(?: in I/O wait)? for more than \d+ seconds`), pid: 2,
		what: "process $2 ($1) has waited in the kernel for minutes", hint: "it usually waits for a disk or a file server: look at the lines before it in dmesg"},

	// The host has no memory left: mm/oom_kill.c. Lines about control groups do not count, because the group
	// may be that of another job. For the groups of ranks, Judge compares the kernel's counts of kills.
	{sign: job.HealthOOM, severity: job.SeverityError, word: "Killed process ", pattern: form(`^Out of memory(?: \([\w]+\))?: Killed process (\d+) \((.*?)\)`), pid: 1,
		what: "the kernel has killed process $1 ($2) because the host has no memory left", hint: "use less memory, or start fewer ranks on the host"},

	// PCI links: drivers/pci/pcie/aer.c.
	{sign: job.HealthPCI, severity: job.SeverityNote, word: "AER: ", pattern: form(`AER: (?:Multiple )?Corrected error (?:message )?received:? (?:from )?(\S+)`),
		what: "the PCI link of $1 had errors that were corrected", hint: hintPCI},
	{sign: job.HealthPCI, severity: job.SeverityError, word: "AER: ", pattern: form(`AER: (?:Multiple )?(?:Uncorrected|Uncorrectable) \((Non-Fatal|Fatal)\) error (?:message )?received:? (?:from )?(\S+)`),
		what: "the PCI link of $2 had an error that was not corrected ($1)", hint: hintPCI},
	{sign: job.HealthPCI, severity: job.SeverityError, word: "pciehp", pattern: form(`pciehp: Slot\(([^)]+)\): (?:Link Down|Card not present)`),
		what: "the device in PCI slot $1 is gone", hint: hintPCI},
}
