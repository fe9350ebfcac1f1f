package main

import (
	"io"
	"strings"
	"testing"
)

func TestOrdered(t *testing.T) {
	for _, tt := range []struct{ words, want string }{
		{"gangrun", "gangrun"},
		{"gangrun --version", "gangrun --version"},
		{"gangrun nosuch last -o json", "gangrun nosuch last -o json"},
		{"gangrun status last -o json", "gangrun status -o json last"},
		{"gangrun status last -o=json", "gangrun status -o=json last"},
		{"gangrun --help status last", "gangrun --help status last"},
		{"gangrun logs last -f --rank 3 --stream err", "gangrun logs -f --rank 3 --stream err last"},
		{"gangrun logs last --rank", "gangrun logs --rank"},
		{"gangrun logs last --nosuch more", "gangrun logs --nosuch last more"},
		{"gangrun diagnose a.log - -o json b.log", "gangrun diagnose -o json a.log - b.log"},
		{"gangrun diagnose a.log -o json -- -b.log", "gangrun diagnose -o json -- a.log -b.log"},
		{"gangrun clean a --dry-run b", "gangrun clean --dry-run a b"},
		{"gangrun status last --generate-bash-completion", "gangrun status last --generate-bash-completion"},
		{"gangrun run job.yaml -n 4 -- train -n 2", "gangrun run -n 4 job.yaml -- train -n 2"},
		{"gangrun run job.yaml -n 4", "gangrun run -n 4 job.yaml"},
		{"gangrun run -n 4 job.yaml --detach -e A=b", "gangrun run -n 4 --detach -e A=b job.yaml"},
		{"gangrun run job.yaml train -n 2", "gangrun run job.yaml train -n 2"},
		{"gangrun run -n 4 train job.yaml -n 2", "gangrun run -n 4 train job.yaml -n 2"},
		{"gangrun run -n 4 -- job.yaml -n 2", "gangrun run -n 4 -- -- job.yaml -n 2"},
		{"gangrun run -e -- job.yaml", "gangrun run -e -- job.yaml"},
		{"gangrun run --", "gangrun run -- --"},
		{"gangrun run --requeue -- train", "gangrun run --requeue=3 -- -- train"},
		{"gangrun run --requeue train 5", "gangrun run --requeue=3 train 5"},
		{"gangrun run --requeue", "gangrun run --requeue=3"},
		{"gangrun run --requeue -n 4 -- train", "gangrun run --requeue=3 -n 4 -- -- train"},
		{"gangrun run --requeue job.yaml", "gangrun run --requeue=3 job.yaml"},
		{"gangrun run job.yaml --requeue -- train", "gangrun run --requeue=3 job.yaml -- train"},
		{"gangrun run --requeue 5 -- train", "gangrun run --requeue 5 -- -- train"},
		{"gangrun run --requeue 5 train", "gangrun run --requeue 5 train"},
		{"gangrun run --requeue=5 -- train", "gangrun run --requeue=5 -- -- train"},
		{"gangrun run --requeue -1 train", "gangrun run --requeue -1 train"},
		{"gangrun run --requeue 5m train", "gangrun run --requeue 5m train"},
		{"gangrun run -e --requeue train", "gangrun run -e --requeue train"},
		{"gangrun run -- train --requeue", "gangrun run -- -- train --requeue"},
		{"gangrun submit -requeue job.yaml", "gangrun submit -requeue=3 job.yaml"},
		{"gangrun status --requeue last", "gangrun status --requeue last"},
		{"gangrun preflight job.yml -o json", "gangrun preflight -o json job.yml"},
		{"gangrun mpiexec -n 2 job.yaml -n 3", "gangrun mpiexec -n 2 job.yaml -n 3"},
	} {
		words := strings.Fields(tt.words)
		if have := strings.Join(ordered(app(io.Discard, io.Discard), words), " "); have != tt.want {
			t.Errorf("%s\nis ordered %s\n     want %s", tt.words, have, tt.want)
		}
	}
}
