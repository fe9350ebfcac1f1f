package outlook

import (
	"strings"
	"testing"
)

// marked returns the Log of a text.
func marked(text string) *Log {
	lines := strings.Split(text, "\n")
	return NewLog(lines, make([]bool, len(lines)), &Reader{})
}

func TestDeclared(t *testing.T) {
	for text, want := range map[string]bool{
		"[0K[32;1mJob succeeded[0;m":                                          true,
		"Finished: SUCCESS":                                                   true,
		"Finished: FAILURE":                                                   false,
		"Successfully completed.":                                             true,
		"Exited with exit code 1.":                                            false,
		"\t(1) Normal termination (return value 0)":                           true,
		"100% tests passed, 0 tests failed out of 18":                         true,
		"94% tests passed, 1 tests failed out of 18":                          false,
		"[  PASSED  ] 3 tests.":                                               true,
		"test result: ok. 3 passed; 0 failed; 0 ignored":                      true,
		"test result: FAILED. 2 passed; 1 failed":                             false,
		"===== 21 passed, 2 xfailed in 31.22s =====":                          true,
		"===== 1 failed, 21 passed in 31.22s =====":                           false,
		"PASS\nok  \tlex\t0.008s":                                             true,
		"FAIL\tlex\t0.008s\nok  \tlex/b\t0.1s":                                false,
		"$ echo $?\n0":                                                        true,
		"$ echo $?\n1":                                                        false,
		"661 NODE_FAIL 0:0\n661 COMPLETED 0:0":                                true,
		"661 COMPLETED 0:0\n662 FAILED 1:0":                                   false,
		"81.0|a|COMPLETED|0:0\n81.1|mon|CANCELLED|0:15":                       true,
		"81.0|a|OUT_OF_MEMORY|0:125\n81|a|COMPLETED|0:0":                      false,
		"81.0|a|CANCELLED|0:15\n81.batch|a|COMPLETED|0:0\n81|a|CANCELLED|0:0": false,
	} {
		if got := marked(text).Succeeded(0); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestConclusiveFile(t *testing.T) {
	for text, want := range map[string]bool{
		"posterior.csv: 90000 rows":               true,
		"result: 2 of 9 images, preds.csv":        false,
		"distances.npy (39 of 40 pairs)":          true,
		"trace.nc (4 chains, 1000 draws)":         true,
		"merged predictions -> out/preds.parquet": true,
		"best point 17 in best.json":              true,
		"reading input.h5 (3 groups)":             false,
		"ckpt_100.pt: step 100":                   false,
		"dump -> state.h5":                        false,
		"train.py: line 3":                        false,
	} {
		if got := Conclusive(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestLogin(t *testing.T) {
	for text, want := range map[string]bool{
		"bash: /opt/site/motd.sh: No such file or directory":            true,
		"/etc/profile.d/x.sh: line 3: syntax error near `fi'":           true,
		"/home/u/.bashrc: line 12: conda: command not found":            true,
		"stty: standard input: Inappropriate ioctl for device":          true,
		"gzip: stdout: Broken pipe":                                     true,
		"/var/spool/slurm_script: line 31: dcgmi: command not found":    true,
		"2026-03-01 10:00:06 /usr/bin/nvidia-smi: version not found":    true,
		"python3: write: Broken pipe":                                   false,
		"bash: /opt/app/run.sh: No such file or directory":              false,
		"/var/spool/slurmd/job81/slurm_script: line 3: srun: not found": false,
		"python: can't open file '/home/u/.profile.py'":                 false,
	} {
		if got := Login(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestBack(t *testing.T) {
	for name, c := range map[string]struct {
		record string
		later  string
		want   bool
	}{
		"NFS":           {"nfs: server s1 not responding, still trying", "nfs: server s1 OK", true},
		"another":       {"nfs: server s1 not responding, still trying", "nfs: server s2 OK", false},
		"Lustre":        {"LustreError: 11-0: work-OST0017: operation ost_write to node 10.0.0.1@o2ib failed: rc = -19", "Lustre: work-OST0017: Connection restored to 10.0.0.1@o2ib", true},
		"Lustre, still": {"LustreError: 11-0: work-OST0017: operation ost_write to node 10.0.0.1@o2ib failed: rc = -19", "Lustre: Skipped 1 previous similar message", false},
		"a link":        {"mlx5_core ib0: Link down", "mlx5_core ib0: Link up", true},
	} {
		if got := Back(c.record, []string{c.later}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDoneJustBefore(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want bool
	}{
		"all counted":   {"step 1/2\nstep 2/2", true},
		"not all":       {"step 1/3\nstep 2/3", false},
		"a closing":     {"step 2/2\nclosing the pool", true},
		"more work":     {"step 2/2\nepoch 3 step 4", false},
		"a failure":     {"step 2/2\njob failed", false},
		"long before":   {"step 2/2\na\nb\nc\nd\ne\nf", false},
		"results saved": {"results saved to out.csv", true},
	} {
		l := marked(c.log)
		if got := l.DoneJustBefore(len(l.Text)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOnInR(t *testing.T) {
	for text, want := range map[string]bool{
		"In addition: Warning message:\nIn log(-1) : NaN\nchain 1 iter 300": true,
		"In addition: Warning message:\nIn log(-1) : NaN":                   false,
		"In addition: Warning message:\nNAs introduced":                     false,
		"chain 1 iter 300\nExecution halted":                                false,
		"":                                                                  false,
	} {
		if got := OnInR(strings.Split(text, "\n")); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
