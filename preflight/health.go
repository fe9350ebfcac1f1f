package preflight

import (
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/preflight/compare"
)

const slowText = "{what} of {hosts} is slow: {value}; the median of {peers} is {median}, {times} times as fast"

var healthCheck = Check{
	Code: "health",
	Asks: "Is each host about as fast as the others? Only with `--health quick`.",
	Problems: []Problem{
		{"health-cpu", job.SeverityWarning, "", slowText, "look whether the CPU is throttled (temperature, power limit, the governor in /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor), or leave the host out"},
		{"health-memory", job.SeverityWarning, "", slowText, "look for a missing or faulty memory module (dmidecode -t memory, edac-util), or leave the host out"},
		{"health-disk", job.SeverityWarning, "", slowText, "look at that file system (iostat -x 1, dmesg, the mount), or name another directory"},
		{"health-gpu", job.SeverityWarning, "", slowText, "look at nvidia-smi -q -d PERFORMANCE,CLOCK,ECC and at the PCIe link (pcie.link.width.current), or leave the host out"},
		{"health-gpu-below", job.SeverityNote, "", slowText, "look at nvidia-smi -q -d PERFORMANCE,CLOCK,ECC if the gang waits for its ranks"},
		{"health-link", job.SeverityWarning, "", slowText, "look at the speed and the errors of its network card (ethtool, ip -s link) and at its cable, name another network with --network, or leave the host out"},
		{"health-link-pair", job.SeverityWarning, "", "{what} between {hosts} is slow, but not those to other hosts: {value}; the median of {peers} is {median}, {times} times as fast", "look at the way between the two hosts (traceroute, the switches), or leave one of them out"},
		{"health-differs", job.SeverityWarning, "", "{what} is not equally fast on {hosts}: {value}; which of them is wrong is not clear", "compare both with what is usual for them, or measure with a third host"},
		{"health-unmeasured", job.SeverityNote, "", "not measured on {hosts}: {kind} {of}: {error}", "the host need not be slow; look at it if the gang is slow"},
	},
}

// measures returns what the health check measures on the hosts.
func (p *Preflight) measures(spec job.Spec, facts []job.Facts) job.Measure {
	m := job.Measure{Kinds: job.SpeedKinds(), CheckpointDir: spec.CheckpointDir, LogDir: p.LogDir, Env: variables(spec.Env)}
	if spec.GPUs == 0 {
		m.Kinds = slices.DeleteFunc(m.Kinds, job.SpeedKind.OfGPU)
	}
	if facts[0].Script != nil && spec.Box() == nil {
		m.Python = facts[0].Program.Path
	}
	return m
}

// Slow returns the findings of the health check about speeds, which were measured on the hosts of a gang. hosts
// is the number of these hosts.
func Slow(speeds []job.Speed, hosts int) (findings []job.Finding) {
	var hits []Hit
	for _, s := range compare.SlowSpeeds(speeds) {
		signature, values := compare.Describe(s)
		hits = append(hits, Hit{Signature: "health-" + signature, Hosts: s.Hosts, Values: values})
	}
	for _, s := range speeds {
		if s.Error != "" {
			hits = append(hits, Hit{Signature: "health-unmeasured", Hosts: []string{s.Host}, Values: map[string]string{"kind": string(s.Kind), "of": s.Of, "error": s.Error}})
		}
	}
	for _, h := range collapse(hits) {
		findings = append(findings, healthCheck.finding(h, hosts))
	}
	return findings
}
