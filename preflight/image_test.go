package preflight

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// inImages has the signatures that the tests of this file and TestCUDA cover.
var inImages = []string{"checkpoint-dir-mount", "image-other-runtime", "cuda-driver-old", "cuda-compat-old"}

// said formats findings as lines.
func said(findings []job.Finding) string {
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = line(f)
	}
	return strings.Join(lines, "\n")
}

// TestCheckpointMount tests mounts of the user that cover the checkpoint directory.
func TestCheckpointMount(t *testing.T) {
	readOnly := broken("/c", job.ErrorReadOnly, "read-only file system")
	for _, c := range []struct {
		mount string
		fact  job.PathFact
		want  string
	}{
		{"/c", readOnly, `checkpoint-dir error output-error h1: the checkpoint directory "/c" is read-only in the container: the job mounts "/c" there`},
		{"/d:/c", readOnly, `checkpoint-dir error output-error h1: the checkpoint directory "/c" is read-only in the container: the job mounts "/d:/c" there`},
		{"/c:rw", readOnly, `checkpoint-dir error output-error h1: the checkpoint directory "/c" is on a file system that is mounted read-only: gangrun could not use it`},
		{"/d:/c:rw", job.PathFact{Path: "/c"}, `checkpoint-dir warning  h1: in the container, the checkpoint directory "/c" is "/d" of the host: gangrun does not find the checkpoints that the ranks write there, and no attempt resumes`},
		{"/c:rw", job.PathFact{Path: "/c"}, ""},
		{"/d:/e:rw", job.PathFact{Path: "/c"}, ""},
	} {
		s, facts := testSpec(), soundFacts(1)
		s.Image, s.Container.Mounts, facts[0].Check.PathFact = "x:1", []string{c.mount}, c.fact
		if have := said(Static(s, facts)); have != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.mount, have, c.want)
		}
	}
}

// TestImageHints tests hints that depend on what is on the host.
func TestImageHints(t *testing.T) {
	for _, c := range []struct {
		fact       job.ImageFact
		text, hint string
	}{
		{job.ImageFact{Problem: job.ImageNoRuntime}, "enroot are not there either", "install containerd"},
		{job.ImageFact{Problem: job.ImageNoRuntime, Others: []string{"singularity", "enroot"}}, "singularity is there", "-- singularity exec IMAGE python3 train.py"},
		{job.ImageFact{Problem: job.ImageNoRuntime, Others: []string{"enroot"}}, "enroot is there", "-- enroot start NAME python3 train.py"},
		{job.ImageFact{Problem: job.ImageForbidden}, "", "add this user to a group that may open it"},
		{job.ImageFact{Problem: job.ImageForbidden, Group: "containers"}, "", `add this user to the group "containers"`},
	} {
		c.fact.Name, c.fact.Error = "x:1", "why"
		found := Static(testSpec(), []job.Facts{{Host: "h1", Image: &c.fact}})
		if len(found) != 1 || !strings.Contains(found[0].Text, c.text) || !strings.Contains(found[0].Hint, c.hint) {
			t.Errorf("%+v: %+v", c.fact, found)
		}
	}
}
