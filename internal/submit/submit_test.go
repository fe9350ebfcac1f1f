package submit

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

func TestMake(t *testing.T) {
	spec := job.Default()
	spec.Command, spec.Ranks = []string{"/x/train.py"}, 8
	r := Request{Spec: spec, Gangrun: "/opt/gang run", File: "/h/it's/job.yaml", Flags: strings.Fields("-p gpu --gres=gpu:4 -N2 -t 2:00:00 --qos=high -Ame")}
	p := Make(r)
	if want := strings.Fields("--job-name=train.py --requeue --no-kill --open-mode=append -p gpu --gres=gpu:4 -N2 -t 2:00:00 --qos=high -Ame"); !reflect.DeepEqual(p.Gang.Args, want) {
		t.Errorf("gang: %q", p.Gang.Args)
	}
	if want := strings.Fields("--job-name=train.py-trial -p gpu --qos=high -Ame -N1 -n1 -t5 --gres=gpu:1"); !reflect.DeepEqual(p.Trial.Args, want) {
		t.Errorf("trial: %q", p.Trial.Args)
	}
	if want := "#!/bin/bash\nexec '/opt/gang run' run --trial off '/h/it'\\''s/job.yaml'\n"; p.Gang.Script != want {
		t.Errorf("script: %q, want %q", p.Gang.Script, want)
	}
	if got := p.Gang.After("7").Args[:2]; !reflect.DeepEqual(got, []string{"--dependency=afterok:7", "--kill-on-invalid-dep=yes"}) {
		t.Errorf("dependency: %q", got)
	}
	r.Spec.Trial = job.Trial{Mode: r.Spec.Trial.Mode, Ranks: 2, Steps: 2, Time: job.Duration(10 * time.Minute)}
	for _, flags := range []string{"-d afterok:55:56 -G8", "-dafterok:55:56 -G8", "--dependency=afterok:55:56 -G8", "--dependency afterok:55:56 -G8", "--depend=afterok:55:56 -G8"} {
		r.Flags = strings.Fields(flags)
		p := Make(r)
		gang, trial := strings.Join(p.Gang.After("7").Args, " "), strings.Join(p.Trial.Args, " ")
		if strings.Count(gang+" ", "afterok:") != 2 || !strings.HasPrefix(gang, "--dependency=afterok:7,afterok:55:56 --kill") || !strings.Contains(trial, "afterok:55:56 --kill-on-invalid-dep=yes -n2 -t23 --gpus-per-task=1") {
			t.Errorf("%s: gang %q, trial %q", flags, gang, trial)
		}
		if want := "preflight --ranks 2 --min-ranks 0 --gang-ranks 8 "; !strings.Contains(p.Trial.Script, want) {
			t.Errorf("script: %q, want %q", p.Trial.Script, want)
		}
	}
	r.Flags, r.Spec.GPUs, r.Spec.Name, r.Spec.Trial = nil, 2, "big", spec.Trial
	if p := Make(r); !reflect.DeepEqual(p.Gang.Args[4:], []string{"-n8", "--gpus-per-task=2"}) || p.Trial.Args[len(p.Trial.Args)-1] != "--gres=gpu:2" {
		t.Errorf("%q, %q", p.Gang.Args, p.Trial.Args)
	}
	r.Spec.Trial.Mode = job.TrialOff
	if p := Make(r); p.Trial != nil || strings.Contains(p.Gang.Script, "--trial") {
		t.Errorf("%+v", p)
	}
}

// TestSend: the gang waits for its trial; a trial without a gang is cancelled.
func TestSend(t *testing.T) {
	dir := t.TempDir()
	write := func(name, script string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("LOG", filepath.Join(dir, "log"))
	write("sbatch", `echo "sbatch $*" >> $LOG; cat > /dev/null; case "$*" in *BAD*) echo "sbatch: error: no such partition" >&2; exit 1 ;; *afterok*) echo "12;cluster" ;; *) echo 11 ;; esac`)
	write("scancel", `echo "scancel $*" >> $LOG`)
	p := Plan{Trial: &Batch{Args: []string{"-N1"}}, Gang: Batch{Args: []string{"-N4"}}}
	if ids, err := Send(context.Background(), p, os.Environ()); err != nil || ids != (IDs{"11", "12"}) {
		t.Errorf("%+v, %v", ids, err)
	}
	p.Gang.Args = []string{"BAD"}
	if _, err := Send(context.Background(), p, os.Environ()); err == nil || err.Error() != "sbatch: error: no such partition" {
		t.Errorf("%v", err)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "log"))
	if !strings.HasSuffix(string(log), "scancel 11\n") {
		t.Errorf("%s", log)
	}
}
