package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// imageHosts are the numbers of hosts on which the launch in containers is measured. The hosts are simulated, and each
// has its own containerd. Unlike real hosts, they share the cores of this machine.
var imageHosts = []int{1, 4}

// inContainers measures whole jobs in an image that the hosts already have. It alternates them with the same jobs over
// plain SSH and prints tables. The aim is that the image adds less than 200 ms to the launch.
func inContainers(ctx context.Context, gangrun, dir string, runs int) error {
	image := filepath.Join(dir, "image.tar")
	if err := writeImage(image); err != nil {
		return err
	}
	for _, hosts := range imageHosts {
		if err := inContainersOn(ctx, gangrun, dir, image, hosts, runs); err != nil {
			return err
		}
	}
	return nil
}

func inContainersOn(ctx context.Context, gangrun, dir, image string, hosts, runs int) error {
	list, n := strings.Join(bedNames(hosts), ","), strconv.Itoa(ranksEach*hosts)
	ours := func(flags ...string) []string {
		argv := append([]string{gangrun, "run", "--preflight", "off", "--mpi", "none", "--output", "none"}, flags...)
		return append(argv, "--hosts", list, "-n", n, "--", "/bin/true")
	}
	first := exec.CommandContext(ctx, gangrun, ours("--image", image)[1:]...)
	if out, err := first.CombinedOutput(); err != nil { // this run sends the image to the hosts
		return fmt.Errorf("%w\n%s", err, out)
	}
	script := `for h in ` + strings.ReplaceAll(list, ",", " ") + `; do ssh $h 'i=$(ctr -n gangrun images ls -q | head -1); ctr -n gangrun run --rm --net-host "$i" bench-$$ /bin/true' & done; wait`
	job := sshJob{"true", hosts, []contender{
		{name: "gangrun in containers", argv: ours("--image", image)},
		{name: "gangrun over SSH", argv: ours()},
		{name: "ctr run over SSH, one a host", argv: []string{"sh", "-c", script}},
	}}
	fmt.Printf("whole job on %d simulated hosts, %d ranks each, in an image that the hosts have: median and middle half of %d alternating runs;\n", hosts, ranksEach, runs)
	fmt.Printf("  ratio of the medians, gangrun in containers to the other, and 90 %% of it by bootstrap\n  %s\n", conditions())
	took, _, err := job.measure(ctx, dir, runs)
	if err != nil {
		return err
	}
	for i, c := range job.by {
		fmt.Printf("  %-30s %-32s %s\n", c.name, took[i], ratioOf(took[0], took[i]))
	}
	fmt.Printf("  containers add %.0f ms\n", milliseconds(took[0].median()-took[1].median()))
	var inside, plain sample
	for range runs {
		a, err := launchTime(ctx, ours("--image", image, "-o", "json"))
		if err != nil {
			return err
		}
		b, err := launchTime(ctx, ours("-o", "json"))
		if err != nil {
			return err
		}
		inside, plain = append(inside, a), append(plain, b)
	}
	fmt.Printf("of it, the launch: until all ranks run, by gangrun's report; %d alternating runs; aim: less than 200 ms more than over SSH\n", runs)
	fmt.Printf("  %-30s %-32s %s\n  %-30s %s\n", "gangrun in containers", inside, ratioOf(inside, plain), "gangrun over SSH", plain)
	fmt.Printf("  containers add %.0f ms; afterwards, %s\n", milliseconds(inside.median()-plain.median()), conditions())
	return nil
}

// launchTime runs a job with gangrun and returns the time from the start of its controller until all ranks ran. argv must
// ask for the report as JSON.
func launchTime(ctx context.Context, argv []string) (time.Duration, error) {
	cmd, done := limited(ctx, argv...)
	defer done()
	data, err := cmd.Output()
	if err == nil {
		err = settle(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("%v: %w", argv, err)
	}
	var report struct {
		Seconds struct{ Preflight, Waiting, Launching, Backoff float64 }
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return 0, err
	}
	s := report.Seconds
	return time.Duration((s.Preflight + s.Waiting + s.Launching + s.Backoff) * float64(time.Second)), nil
}

// writeImage writes an image archive as "docker save" does. The image has only busybox, as /bin/true.
func writeImage(path string) error {
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return err
	}
	var layer bytes.Buffer
	if err := writeTar(&layer, map[string][]byte{"bin/true": program}); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{"bench:1"}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := writeTar(&archive, map[string][]byte{"layer.tar": layer.Bytes(), "config.json": config, "manifest.json": manifest}); err != nil {
		return err
	}
	return os.WriteFile(path, archive.Bytes(), 0o644)
}

func writeTar(to *bytes.Buffer, files map[string][]byte) error {
	w := tar.NewWriter(to)
	for name, data := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(data))}); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return w.Close()
}
