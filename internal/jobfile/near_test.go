package jobfile

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/suggest"
)

func TestNear(t *testing.T) {
	for text, want := range map[string]string{
		"rank": "ranks", "Ranks": "ranks", "rnaks": "ranks", "comand": "command", "commmand": "command",
		"checkpoint_dir": "checkpoint-dir", "checkpointdir": "checkpoint-dir", "checkpoint": "checkpoint-dir",
		"exitcode": "exit-code", "retry": "retries", "retrys": "retries", "work-dir": "workdir", "wordir": "workdir",
		"input": "inputs", "secrets": "secret", "time-out": "timeout", "outptu": "output", "preflght": "preflight",
		"polcy": "policy", "environment": "", "envs": "env", "std-in": "stdin", "trails": "trial",
		"": "", "x": "", "foo": "", "imgae": "image", "host": "hosts", "host-file": "hostfile", "kubernetes": "",
		"volumes": "", "containers": "container", "restart": "", "qwertz": "", "1": "", "数据": "", strings.Repeat("ranks", 1000): "",
	} {
		if got := suggest.Nearest(text, keys("")); got != want {
			t.Errorf("suggest.Nearest(%q) = %q, want %q", text, got, want)
		}
	}
	categories := texts(job.Categories())
	for text, want := range map[string]string{
		"gpu_oom": "gpu-oom", "unknwon": "unknown", "hostlost": "host-lost", "everything": "", "hangs": "hang", "oom": "",
	} {
		if got := suggest.Nearest(text, categories); got != want {
			t.Errorf("suggest.Nearest(%q) of the categories = %q, want %q", text, got, want)
		}
	}
}
