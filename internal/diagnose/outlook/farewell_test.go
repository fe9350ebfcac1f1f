package outlook

import "testing"

func TestFarewell(t *testing.T) {
	for text, want := range map[string]bool{
		"Error: Not freed memory blocks: 14, total unfreed memory 0.010 MB": true,
		"FATAL:  terminating connection due to administrator command":       true,
		"Failed to disconnect from coordination service":                    true,
		"_run_finalizers": true,
		"cannot unlink /dev/shm/lat.1: No such file or directory":                         true,
		"SparkListenerBus has already stopped! Dropping event":                            true,
		"slurmstepd: error: *** STEP 991.1 ON k101 CANCELLED AT 2026-03-09T01:09:12 ***":  true,
		"slurmstepd: error: *** JOB 991 ON k101 CANCELLED AT 2026-03-09T01:09:12 DUE ***": false,
		"OSError: [Errno 28] No space left on device":                                     false,
		"failed to close output file out.nc":                                              false,
		"Connection closed by peer [10.0.0.2]:123":                                        false,
	} {
		if got := Farewell(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestTolerated(t *testing.T) {
	for text, want := range map[string]bool{
		"make: [Makefile:12: report] Error 1 (ignored)":                                         true,
		"make[2]: [Makefile:9: work] Aborted (ignored)":                                         true,
		"make: *** [Makefile:12: report] Error 1":                                               false,
		"run.sh: line 9:    71 Aborted                 (core dumped) python -m viewer || true":  true,
		"run.sh: line 9:    71 Killed                  ./plot || echo 'no plot'":                true,
		"run.sh: line 9:    71 Segmentation fault      (core dumped) mpirun ./solver || exit 3": false,
		"run.sh: line 9:    71 Segmentation fault      (core dumped) mpirun ./solver":           false,
	} {
		if got := Tolerated(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestWaits(t *testing.T) {
	for text, want := range map[string]bool{
		"rank 0 waiting in init":               true,
		"peer node 1 left, waiting 60 s":       true,
		"waiting 5 s, then retrying":           false,
		"cannot restart":                       false,
		"worker 3 is gone, a new worker takes": false,
	} {
		if got := Waits(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestOnTheWay(t *testing.T) {
	for text, want := range map[string]bool{
		"saved model.pt":                   true,
		"saved final model to out/best.h5": true,
		"saved model_8.pt":                 false,
		"wrote weights-epoch12.h5":         false,
	} {
		if got := Of(text)&Done != 0; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
