package jobfile

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
)

// words are texts that YAML could read as something other than a string.
var words = []string{"", " ", "~", "null", "yes", "off", "0x10", "1e3", "010", "1_000", "2024-01-01", ".inf", "<<", "- a", "a: b", "a #b", "#a", "'", `"`, "\\",
	"*a", "&a", "!a", "!!binary x", "@a", "`a`", "%a", "|", ">", "[a]", "{a}", "{{.Rank}}", "a,b", "?", "? a", ":", "---", "...", "\n", "a\n", "\na", " a\n  b\n", "a\n\n", "\t", "\ta", "a\t",
	"\r", "a\r\nb", "\u0085", "\u2028", "\u00a0", "\ufeff", "\ufeffa", "\ufffe", "\x1b[1m", "\x7f", "é", "🙂", "\U000e0001", "\xff", "a\xc3", "a\n \xff", "\ufffd", strings.Repeat("long ", 100)}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(words),
		rapid.StringOfN(rapid.RuneFrom([]rune(" \n\t:#-'\"ab\\{}[],&*!|>%@`~\u0085\u2028\ufeffé🙂\x01")), 0, 12, -1),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }),
	).Filter(func(s string) bool { return !strings.ContainsRune(s, 0) })
}

func anyEnv() *rapid.Generator[map[string]string] {
	name := anyText().Filter(func(s string) bool { return s != "" && !strings.Contains(s, "=") })
	return rapid.MapOfN(name, anyText(), 0, 4)
}

func anyPath() *rapid.Generator[string] {
	return anyText().Filter(func(s string) bool { return s != "" && s != "~" && !strings.HasPrefix(s, "~/") })
}

func anyDuration(least job.Duration) *rapid.Generator[job.Duration] {
	return rapid.Custom(func(t *rapid.T) job.Duration {
		unit := rapid.SampledFrom([]time.Duration{1, time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "unit")
		return job.Duration(unit*time.Duration(rapid.IntRange(0, 5000).Draw(t, "count"))) + least
	})
}

// anySpec generates valid Specs.
func anySpec() *rapid.Generator[job.Spec] {
	return rapid.Custom(func(t *rapid.T) job.Spec {
		ranks := rapid.IntRange(1, job.MaxRanks).Draw(t, "ranks")
		argv := rapid.SliceOfN(anyText(), 0, 5)
		command := rapid.Custom(func(t *rapid.T) []string {
			return append([]string{anyText().Filter(func(s string) bool { return s != "" }).Draw(t, "program")}, argv.Draw(t, "args")...)
		})
		env := anyEnv().Draw(t, "env")
		names := []string{"TOKEN"}
		for name := range env {
			names = append(names, name)
		}
		s := job.Spec{
			Name:          anyText().Draw(t, "name"),
			Command:       command.Draw(t, "command"),
			Ranks:         ranks,
			MinRanks:      rapid.IntRange(0, ranks).Draw(t, "min-ranks"),
			Loopback:      rapid.IntRange(0, job.MaxLoopback).Draw(t, "loopback"),
			Env:           env,
			Secret:        rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "secret"),
			Workdir:       "/" + anyText().Draw(t, "workdir"),
			Inputs:        rapid.SliceOfN(anyPath(), 0, 3).Draw(t, "inputs"),
			CheckpointDir: rapid.SampledFrom([]string{"/c", "/é f"}).Draw(t, "checkpoint-dir"),
			Resume:        rapid.Bool().Draw(t, "resume"),
			Retries:       rapid.IntRange(0, 1<<40).Draw(t, "retries"),
			Preflight:     rapid.SampledFrom(job.PreflightModes()).Draw(t, "preflight"),
			Trial: job.Trial{
				Args:  argv.Draw(t, "trial.args"),
				Env:   anyEnv().Draw(t, "trial.env"),
				Ranks: rapid.IntRange(0, ranks).Draw(t, "trial.ranks"),
				Steps: rapid.IntRange(1, 1000).Draw(t, "trial.steps"),
				Time:  anyDuration(1).Draw(t, "trial.time"),
				Mode:  rapid.SampledFrom(job.TrialModes()).Draw(t, "trial.mode"),
			},
			Policy:   rapid.MapOfN(rapid.SampledFrom(job.Categories()), rapid.SampledFrom(job.Actions()), 0, 4).Draw(t, "policy"),
			Grace:    anyDuration(0).Draw(t, "grace"),
			Timeout:  anyDuration(0).Draw(t, "timeout"),
			Output:   rapid.SampledFrom(job.OutputModes()).Draw(t, "output"),
			Stdin:    rapid.SampledFrom([]job.Stdin{job.StdinAll, job.StdinNone, job.StdinRank(0), job.StdinRank(ranks - 1)}).Draw(t, "stdin"),
			TTY:      rapid.SampledFrom(job.TTYs()).Draw(t, "tty"),
			ExitCode: rapid.SampledFrom(job.ExitModes()).Draw(t, "exit-code"),
			MPI:      rapid.SampledFrom(job.MPIs()).Draw(t, "mpi"),
			GPUs:     rapid.IntRange(-1, 16).Draw(t, "gpus-per-rank"),
			Locality: rapid.SampledFrom(job.Localities()).Draw(t, "locality"),

			GPUVisibility: rapid.SampledFrom(job.GPUVisibilities()).Draw(t, "gpu-visibility"),

			Patience: rapid.SampledFrom([]job.Patience{"strict", "0s", "1h30m", "island=1s,rack=strict", "host=10m"}).Draw(t, "patience"),
		}
		s.Health = rapid.SampledFrom(job.HealthModes()).Draw(t, "health")
		s.HostTimeout, s.OrphanGrace = anyDuration(twoBeats).Draw(t, "host-timeout"), anyDuration(twoBeats).Draw(t, "orphan-grace")
		s.Network = rapid.SampledFrom([]string{"", "eth0", "10.0.0.0/8"}).Draw(t, "network")
		s.EnvCompat = job.EnvCompatNone
		s.OnSignal = rapid.SampledFrom(job.OnSignals()).Draw(t, "on-signal")
		s.Watch = rapid.SampledFrom(job.WatchModes()).Draw(t, "watch")
		s.HangTimeout = anyDuration(0).Draw(t, "hang-timeout")
		s.MTBF = anyDuration(0).Draw(t, "mtbf")
		s.Faulthandler = rapid.Bool().Draw(t, "faulthandler")
		s.BeforeStop = rapid.SampledFrom(job.BeforeStops()).Draw(t, "before-stop")
		s.EarlyStop = rapid.SampledFrom([]job.EarlyStop{"off", "advise", "stop", "plateau=stop", "not-finite=advise,flat=off"}).Draw(t, "early-stop")
		s.Curve = job.Curve{
			Metric: anyText().Draw(t, "metric"), Goal: rapid.SampledFrom(job.Goals()).Draw(t, "goal"), Target: rapid.SampledFrom([]string{"", "0.5", "-1e3"}).Draw(t, "target"),
			Total: rapid.IntRange(0, 1<<40).Draw(t, "total"), DecayEnd: rapid.IntRange(-1, 99).Draw(t, "decay-end"),
		}
		s.RetryOnDiverge = job.Diverge{
			Resume: rapid.SampledFrom(job.DivergeResumes()).Draw(t, "retry"), SkipSteps: rapid.IntRange(0, 99).Draw(t, "skip-steps"),
			Env: anyEnv().Draw(t, "retry env"), Times: rapid.IntRange(0, 9).Draw(t, "times"),
		}
		if s.EarlyStop == "off" {
			s.RetryOnDiverge.Resume = job.DivergeOff
		}
		if s.RetryOnDiverge.Resume == job.DivergeOff { // settings for a retry would be refused
			s.RetryOnDiverge.SkipSteps, s.RetryOnDiverge.Env = 0, map[string]string{}
		}
		s.Container.Network = job.NetworkHost
		if rapid.Bool().Draw(t, "has an image") {
			s.Image = rapid.SampledFrom([]string{"ubuntu:24.04", "/images/a.tar"}).Draw(t, "image")
			if s.Trial.Mode == job.TrialUncontained {
				s.Trial.Mode = job.TrialOn
			}
			s.Container = job.Container{
				Mounts:  rapid.SliceOfN(rapid.SampledFrom([]string{"/data", "/a:/b:rw", "c:/c"}), 0, 3).Draw(t, "mounts"),
				Workdir: rapid.SampledFrom([]string{"", "/work"}).Draw(t, "container workdir"),
				Network: rapid.SampledFrom(job.ContainerNetworks()).Draw(t, "container network"),
				User:    rapid.SampledFrom([]string{"", "image", "1000:100"}).Draw(t, "user"),
				ShmSize: job.Size(rapid.Int64Range(0, 1<<50).Draw(t, "shm-size")), Memory: job.Size(rapid.Int64Range(0, 1<<50).Draw(t, "memory")),
				CPUs: rapid.IntRange(0, 99).Draw(t, "cpus"), ReadOnly: rapid.Bool().Draw(t, "read-only"), GPUKind: rapid.SampledFrom([]string{"", "vendor.com/device"}).Draw(t, "gpu-kind"),
			}
		}
		s.Launcher = rapid.SampledFrom(job.LauncherModes()).Draw(t, "launcher")
		if s.MPI == job.MPIAuto || s.MPI == job.MPINone {
			s.EnvCompat = rapid.SampledFrom(job.EnvCompats()).Draw(t, "env-compat")
		}
		lists := []func(){func() {}, func() { s.Inventory = "/i" }, func() { s.Hosts = "h1,h2:4" }, func() { s.Hostfile = "/h" }}
		if s.Loopback > 0 {
			lists = lists[:2]
		}
		rapid.SampledFrom(lists).Draw(t, "list of hosts")()
		if rapid.Bool().Draw(t, "has a trial command") {
			s.Trial.Command = command.Draw(t, "trial.command")
		}
		return s
	})
}

// TestMarshalParses checks that Parse is the reverse of Marshal for every valid Spec, except for secrets.
func TestMarshalParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := anySpec().Draw(t, "spec")
		if err := jobcheck.Spec(spec); err != nil {
			t.Fatalf("the drawn spec is not valid: %v", err)
		}
		data, err := Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse("job.yaml", data)
		if err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
		got := job.Default()
		f.Apply(&got)
		if want := spec.Redacted(); !reflect.DeepEqual(plain(got), plain(want)) {
			t.Fatalf("got  %+v\nwant %+v\nfrom\n%s", got, want, data)
		}
	})
}

// plain replaces every empty list and mapping by nil.
func plain(s job.Spec) job.Spec {
	for _, f := range table {
		if f.at != nil && empty(f.at(&s)) {
			place := reflect.ValueOf(f.at(&s)).Elem()
			place.Set(reflect.Zero(place.Type()))
		}
	}
	return s
}

// TestTableHoldsTheWholeSpec checks that every part of a Spec has a field in the table, so that Marshal and the
// documentation are complete.
func TestTableHoldsTheWholeSpec(t *testing.T) {
	var spec job.Spec
	places := make(map[any]string)
	for _, f := range table {
		if f.at == nil {
			continue
		}
		if other, twice := places[f.at(&spec)]; twice {
			t.Errorf("%q and %q have one place", f.Name, other)
		}
		places[f.at(&spec)] = f.Name
	}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			name := path + v.Type().Field(i).Name
			if v.Field(i).Type() == reflect.TypeFor[job.Trial]() || v.Field(i).Type() == reflect.TypeFor[job.Container]() ||
				v.Field(i).Type() == reflect.TypeFor[job.Curve]() || v.Field(i).Type() == reflect.TypeFor[job.Diverge]() {
				walk(v.Field(i), name+".")
			} else if name == "Apps" { // only gangrun mpiexec sets this
				continue
			} else if places[v.Field(i).Addr().Interface()] == "" {
				t.Errorf("Spec.%s has no field", name)
			}
		}
	}
	walk(reflect.ValueOf(&spec).Elem(), "")
}

func TestMarshalIsReadable(t *testing.T) {
	spec := job.Default()
	spec.Command, spec.Workdir = []string{"python", "-c", "import os\nprint(os.getpid())\n", "0.1"}, "/w"
	spec.Env, spec.Secret = map[string]string{"B": "abc", "A": "1"}, []string{"B"}
	data, err := Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	const want = `command:
  - python
  - -c
  - |
    import os
    print(os.getpid())
  - "0.1"
ranks: 1
gpus-per-rank: -1
gpu-visibility: gang
host-timeout: 10s
orphan-grace: 20s
locality: any
patience: 2m
env:
  A: "1"
  B: '***'
secret:
  - B
workdir: /w
retries: 3
preflight: full
health: off
trial:
  steps: 2
  time: 1m
  mode: on
grace: 5s
output: first
stdin: "0"
tty: auto
exit-code: rank
mpi: auto
env-compat: none
launcher: auto
on-signal: pass
before-stop: none
before-stop-wait: 30s
init-timeout: 1m
watch: on
hang-timeout: 10m
straggler-window: 30s
early-stop:
  not-finite: stop
  diverged: stop
curve:
  goal: auto
  decay-end: -1
retry-on-diverge:
  resume: off
  times: 1
`
	if string(data) != want {
		t.Errorf("got\n%s\nwant\n%s", data, want)
	}
}

// TestMarshalTellsOfPrograms checks that a job file has only one program, and that it says so if the job had several.
func TestMarshalTellsOfPrograms(t *testing.T) {
	spec := job.Default()
	spec.Command, spec.Workdir, spec.Ranks = []string{"./a"}, "/w", 3
	spec.Apps = []job.App{{Ranks: 1, Command: []string{"./a"}}, {Ranks: 2, Command: []string{"./b", "--fast"}}}
	data, err := Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	const want = "# The first of 2 programs of one gang, which gangrun mpiexec has started:\n# 1 ranks of [\"./a\"]\n# 2 ranks of [\"./b\" \"--fast\"]\ncommand:\n"
	if !strings.HasPrefix(string(data), want) {
		t.Errorf("got\n%s\nwant it to begin with\n%s", data, want)
	}
}

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", time.Minute: "1m", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m",
		time.Hour + 10*time.Second: "1h0m10s", 100 * time.Hour: "100h", 1500 * time.Millisecond: "1.5s", 10 * time.Second: "10s", time.Hour + 10*time.Minute: "1h10m",
	} {
		v := job.Duration(d)
		if got := written(&v); got != want {
			t.Errorf("written(%s) = %q, want %q", d, got, want)
		}
	}
}
