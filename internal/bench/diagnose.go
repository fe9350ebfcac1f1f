package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
)

// traceback is the end of a log of a job that failed.
const traceback = `Traceback (most recent call last):
  File "train.py", line 41, in <module>
    main()
  File "train.py", line 36, in main
    loss = model(batch)
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total capacity; 76.21 GiB already allocated)
`

// diagnose measures how fast gangrun diagnoses logs. For comparison, ripgrep searches the same logs for the texts that
// gangrun's rules look for.
func diagnose(ctx context.Context, gangrun string, runs, megabytes int) error {
	ripgrep, err := exec.LookPath("rg")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gangrun-bench-diagnose-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	texts := filepath.Join(dir, "texts")
	n, err := writeTexts(texts)
	if err != nil {
		return err
	}
	log := filepath.Join(dir, "train.log")
	if err := writeLog(log, megabytes*1_000_000, traceback); err != nil {
		return err
	}
	fmt.Printf("a log of %d MB of training, median and middle half of %d alternating runs\n", megabytes, runs)
	fmt.Printf("  gangrun: gangrun diagnose FILE\n")
	fmt.Printf("  ripgrep: rg -i -F -c -f TEXTS FILE, with the %d texts that gangrun's rules look for\n", n)
	var ours, theirs, oursCPU, theirsCPU sample
	for range runs {
		for _, c := range []struct {
			argv      []string
			took, cpu *sample
		}{
			{[]string{gangrun, "diagnose", log}, &ours, &oursCPU},
			{[]string{ripgrep, "-i", "-F", "-c", "-f", texts, log}, &theirs, &theirsCPU},
		} {
			cmd, done := limited(ctx, c.argv...)
			took, err := timed(cmd, done)
			if err != nil {
				return err
			}
			*c.took, *c.cpu = append(*c.took, took), append(*c.cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		}
	}
	rate := func(s sample) float64 { return float64(megabytes) / s.median().Seconds() }
	fmt.Printf("  gangrun %v, %.0f MB/s, %.0f MB in a second of a core\n", ours, rate(ours), rate(oursCPU))
	fmt.Printf("  ripgrep %v, %.0f MB/s, %.0f MB in a second of a core\n", theirs, rate(theirs), rate(theirsCPU))
	fmt.Printf("  ratio %v\n", ratioOf(ours, theirs))
	return diagnoseRanks(ctx, gangrun, dir, runs)
}

// diagnoseRanks measures how long gangrun takes to diagnose the logs of many ranks.
func diagnoseRanks(ctx context.Context, gangrun, dir string, runs int) error {
	for _, c := range []struct{ ranks, megabytes int }{{64, 100}, {1024, 100}} {
		logs := filepath.Join(dir, fmt.Sprint("logs", c.ranks))
		if err := os.Mkdir(logs, 0o700); err != nil {
			return err
		}
		for rank := range c.ranks {
			end := ""
			if rank == c.ranks/3 {
				end = traceback
			}
			if err := writeLog(filepath.Join(logs, fmt.Sprintf("rank-%04d.err", rank)), c.megabytes*1_000_000/c.ranks, end); err != nil {
				return err
			}
		}
		var took sample
		for range runs {
			t, err := timed(limited(ctx, gangrun, "diagnose", logs))
			if err != nil {
				return err
			}
			took = append(took, t)
		}
		fmt.Printf("  the logs of %d ranks, %d MB in all: %v\n", c.ranks, c.megabytes, took)
	}
	return nil
}

// writeTexts writes the texts that gangrun's rules look for, with one text on each line, and returns their number.
func writeTexts(path string) (int, error) {
	seen := map[string]bool{}
	var b strings.Builder
	for _, r := range rules.All() {
		for _, text := range r.Needles {
			if !seen[text] && !strings.Contains(text, "\n") {
				seen[text] = true
				b.WriteString(text + "\n")
			}
		}
	}
	return len(seen), os.WriteFile(path, []byte(b.String()), 0o600)
}

// writeLog writes the log of a training job. The log has about size bytes and ends with the text end.
func writeLog(path string, size int, end string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriterSize(file, 1<<20)
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for step, n := 0, 0; n < size; step++ {
		at := began.Add(time.Duration(step) * 37 * time.Millisecond).Format("2006-01-02 15:04:05.000")
		lines := fmt.Sprintf("%s INFO trainer.py:88 - step %d | loss %.4f | lr 3.00e-04 | grad norm %.3f\n", at, step, 9/(1+float64(step)/1000), 1.25)
		switch {
		case step%100 == 0:
			lines += fmt.Sprintf("[%s] [INFO] [logging.py:96:log_dist] [Rank 0] step=%d, skipped=0, lr=[0.0003], mom=[(0.9, 0.95)]\n", at, step)
		case step%17 == 0:
			lines += fmt.Sprintf("Epoch %d:  42%%|####      | %d/240 [00:21<00:29,  4.8it/s, v_num=0, train_loss=0.412]\n", step/240, step%240)
		}
		k, err := w.WriteString(lines)
		if err != nil {
			return err
		}
		n += k
	}
	_, err = w.WriteString(end)
	return errors.Join(err, w.Flush())
}
