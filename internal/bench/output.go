package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// output measures how fast the output of 8 ranks gets into their log files. For comparison, one
// process writes as much into one file.
func output(ctx context.Context, gangrun string, megabytes int) error {
	const ranks = 8
	each := megabytes / ranks * 1_000_000
	dir, err := os.MkdirTemp("", "gangrun-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	disk, err := writeFile(filepath.Join(dir, "disk"), int64(each)*ranks)
	if err != nil {
		return err
	}
	lines := `yes 'step of a rank that says a lot, with a line of eighty bytes, as many programs do' | head -c ` + strconv.Itoa(each)
	ctx, cancel := context.WithCancel(ctx) // without a limit, because a disk may be slow
	cmd := exec.CommandContext(ctx, gangrun, "run", "--preflight", "off", "--output", "none", "-n", strconv.Itoa(ranks), "--", "sh", "-c", lines)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	took, err := timed(cmd, cancel)
	if err != nil {
		return err
	}
	mbs := func(d time.Duration) float64 { return float64(each) * ranks / 1e6 / d.Seconds() }
	fmt.Printf("%d ranks write %d MB into their logs: %.0f MB/s; one process into one file: %.0f MB/s\n",
		ranks, each*ranks/1_000_000, mbs(took), mbs(disk))
	return nil
}

// writeFile writes a file of that size and removes it. It returns the time that the writing took.
func writeFile(path string, size int64) (time.Duration, error) {
	begin := time.Now()
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for left := size; left > 0 && err == nil; left -= int64(len(piece)) {
		_, err = file.Write(piece[:min(left, int64(len(piece)))])
	}
	took := time.Since(begin)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	_ = os.Remove(path)
	return took, err
}
