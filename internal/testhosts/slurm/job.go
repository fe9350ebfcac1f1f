package slurm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/testhosts"
)

// users has the users of the hosts, by their name. sshd lets bob in nowhere.
var users = map[string]string{"root": "0", "alice": "7001", "bob": "7002"}

// Command returns a command that runs as a user on the controller. Slurm's commands work there.
func (c *Cluster) Command(ctx context.Context, user string, argv ...string) *exec.Cmd {
	cmd := c.bed.Controller().Command(ctx, append(c.Prefix(user), argv...)...)
	if user != "root" {
		cmd.Dir = c.Dir(user)
	}
	return cmd
}

// Prefix returns the words that root on the controller writes before a command to run it as user.
func (c *Cluster) Prefix(user string) []string {
	words := []string{"env", "SLURM_CONF=" + c.path("etc/slurm.conf"), "USER=" + user, "LOGNAME=" + user}
	if user != "root" {
		words = append(words, "HOME="+c.Dir(user))
	}
	id := users[user]
	return append(words, "setpriv", "--reuid", id, "--regid", id, "--clear-groups", "--")
}

// Exec runs a command as a user on the controller. It returns what the command prints to
// standard output and standard error.
func (c *Cluster) Exec(ctx context.Context, user string, argv ...string) (string, error) {
	cmd := c.Command(ctx, user, argv...)
	cmd.WaitDelay = limit
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %s: %w\n%s", user, strings.Join(argv, " "), err, bytes.TrimSpace(out))
	}
	return string(out), err
}

// Dir returns the user's home on the cluster, a directory that all hosts share.
func (c *Cluster) Dir(user string) string {
	dir := filepath.Join(c.bed.Shared(), user)
	if _, err := os.Stat(dir); err != nil && os.Mkdir(dir, 0o700) == nil {
		var id int
		fmt.Sscan(users[user], &id)
		_ = os.Chown(dir, id, id)
	}
	return dir
}

// Submit gives a batch script to sbatch and returns the ID of the job. Its output is in the
// file that Output names.
func (c *Cluster) Submit(user, script string, flags ...string) (string, error) {
	argv := append([]string{"sbatch", "--parsable", "-o", c.Output(user, "%j"), "--open-mode=append"}, flags...)
	cmd := c.Command(context.Background(), user, argv...)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("sbatch: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Output returns the path of the file with the output of a job from Submit.
func (c *Cluster) Output(user, id string) string {
	return filepath.Join(c.Dir(user), "slurm-"+id+".out")
}

// Job has the fields of a job by their names in scontrol: JobState, NodeList, ExitCode and so
// on.
type Job map[string]string

// Job returns a job.
func (c *Cluster) Job(id string) (Job, error) {
	out, err := c.Exec(context.Background(), "root", "scontrol", "-o", "show", "job", id)
	if err != nil {
		return nil, err
	}
	job := Job{}
	for _, field := range strings.Fields(out) {
		if name, value, ok := strings.Cut(field, "="); ok {
			job[name] = value
		}
	}
	return job, nil
}

// Await waits until a job meets a condition.
func (c *Cluster) Await(id string, within time.Duration, is func(Job) bool) (Job, error) {
	var job Job
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var err error
		if job, err = c.Job(id); err == nil && is(job) { // slurmctld may be restarting
			return job, nil
		}
	}
	return job, fmt.Errorf("job %s is not as expected after %s: %v\n%s", id, within, job, c.Log("slurmctld"))
}

// Ended reports whether the job has ended and its nodes are free again.
func (j Job) Ended() bool {
	switch j["JobState"] {
	case "PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "RESIZING", "REQUEUED", "":
		return false
	}
	return true
}

// State returns the state of a job.
func (j Job) State() string { return j["JobState"] }

// Left returns the processes on all hosts that have a marker in their environment.
func (c *Cluster) Left(marker string) (all []testhosts.Process, err error) {
	for _, h := range c.bed.Hosts() {
		if h.Init() == 0 {
			continue
		}
		found, err := h.Processes(marker)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}
