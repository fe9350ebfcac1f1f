package slurm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeFiles writes the configuration of the cluster and makes its directories.
func (c *Cluster) writeFiles() error {
	for _, dir := range []string{"etc", "state", "log", "munge", "dev"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			return err
		}
	}
	key := make([]byte, 1024)
	copy(key, c.dir) // all clusters of a machine may use their own key: it keeps nobody out
	var devices []string
	for i := range c.options.gpus {
		devices = append(devices, c.path("dev", fmt.Sprintf("nvidia%d", i)))
		if err := mknod(devices[i], nvidiaMajor, i); err != nil {
			return err
		}
	}
	for _, h := range c.bed.Hosts() {
		if err := os.WriteFile(c.kernelLog(h.Name()), nil, 0o644); err != nil {
			return err
		}
	}
	gres := ""
	if len(devices) > 0 {
		gres = fmt.Sprintf("Name=gpu File=%s[0-%d]\n", c.path("dev", "nvidia"), len(devices)-1)
	}
	constrain := "yes"
	if c.options.allDevices {
		constrain = "no"
	}
	return errors.Join(
		os.Chmod(c.path("munge"), 0o700),
		os.WriteFile(c.path("munge/key"), key, 0o400),
		os.WriteFile(c.path("etc/slurm.conf"), []byte(c.config()), 0o644),
		os.WriteFile(c.path("etc/gres.conf"), []byte(gres), 0o644),
		os.WriteFile(c.path("etc/cgroup.conf"), []byte(cgroupConf+"ConstrainDevices="+constrain+"\n"), 0o644),
		os.WriteFile(c.path("slurmd.sh"), []byte(slurmdScript), 0o644),
	)
}

const cgroupConf = `CgroupPlugin=cgroup/v1
CgroupMountpoint=/run/slurmcg
CgroupAutomount=no
ConstrainRAMSpace=yes
ConstrainSwapSpace=no
AllowedSwapSpace=0
`

// config returns slurm.conf. The times are as short as Slurm allows for most of them.
func (c *Cluster) config() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("ClusterName=test")
	line("SlurmctldHost=ctl(10.77.0.254)")
	line("SlurmUser=root")
	line("SlurmdUser=root")
	line("AuthType=auth/munge")
	line("AuthInfo=socket=%s,cred_expire=5", c.path("munge.sock")) // a requeued job waits for so long
	line("CredType=cred/munge")
	line("StateSaveLocation=%s", c.path("state"))
	line("SlurmdSpoolDir=/run/slurmd")
	line("SlurmctldPidFile=%s", c.path("slurmctld.pid"))
	line("SlurmdPidFile=/run/slurmd.pid")
	line("SlurmctldLogFile=%s", c.path("log/slurmctld.log"))
	line("SlurmdLogFile=%s", c.path("log/slurmd-%n.log"))
	line("ProctrackType=proctrack/cgroup")
	line("TaskPlugin=task/cgroup")
	line("PrologFlags=Contain")
	line("SwitchType=switch/none")
	line("MpiDefault=none")
	line("MailProg=/bin/true")
	line("JobAcctGatherType=jobacct_gather/none")
	line("AccountingStorageType=accounting_storage/none")
	line("SelectType=select/cons_tres")
	line("SelectTypeParameters=CR_Core_Memory")
	if c.options.gpus > 0 {
		line("GresTypes=gpu")
	}
	line("PreemptType=preempt/partition_prio")
	line("PreemptMode=REQUEUE")
	line("ReturnToService=2")
	line("SchedulerType=sched/backfill")
	line("SchedulerParameters=bf_interval=1,sched_min_interval=200000,batch_sched_delay=0")
	line("JobRequeue=1")
	line("KillWait=%d", c.options.killWait)
	line("InactiveLimit=0")
	line("MinJobAge=300")
	line("SlurmdTimeout=10")
	line("SlurmctldTimeout=10")
	line("UnkillableStepTimeout=10")
	line("SlurmdParameters=config_overrides")
	line("DefMemPerCPU=%d", c.options.memory/c.options.cpus)
	gres := ""
	if c.options.gpus > 0 {
		gres = fmt.Sprintf(" Gres=gpu:%d", c.options.gpus)
	}
	n := len(c.bed.Hosts())
	line("NodeName=h[1-%d] CPUs=%d RealMemory=%d%s State=UNKNOWN", n, c.options.cpus, c.options.memory, gres)
	line("PartitionName=low Nodes=h[1-%d] Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=%d", n, c.options.killWait)
	line("PartitionName=high Nodes=h[1-%d] Default=NO MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF", n)
	return b.String()
}

// path returns the path of a file of the cluster. All hosts see it.
func (c *Cluster) path(names ...string) string {
	return filepath.Join(append([]string{c.dir}, names...)...)
}
