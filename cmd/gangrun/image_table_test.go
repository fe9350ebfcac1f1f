package main_test

import (
	"regexp"
	"strings"
	"testing"
)

// imageEndings is the table of problems with images and containers.
var imageEndings = docTable{
	path:  faultsPath,
	begin: "<!-- images: written by UPDATE=1 go test -run TestImage ./cmd/gangrun -->\n",
	end:   "<!-- end of images -->\n",
	head:  "| what happens | what gangrun says | exit code | left |\n|---|---|---|---|\n",
	first: []string{
		"there is no containerd",
		"the user may not open containerd's socket",
		"the reference is not valid",
		"there is no such archive",
		"the file is not an archive",
		"the archive is truncated",
		"the connection breaks while the archive is sent",
		"the connection breaks for a moment while the archive is sent",
		"the disk of a host is full",
		"the image is for other machines",
		"the registry cannot be reached",
		"the registry refuses",
		"neither the host nor the registry has the image",
		"one of the hosts lacks the image",
		"a host has another image under the same name",
		"CDI does not know the GPUs",
		"the source of a mount does not exist",
		"the script is not mounted",
		"a mount is inside another that is read-only",
		"the checkpoint directory is mounted read-only",
		"the image does not have the working directory",
		"the image does not have the program",
		"the entry point of the image does not exist",
		"the image does not have its user",
		"the image has no shell, and the ranks need none",
		"`--trial uncontained`",
		"a rank is killed",
		"the ranks need more than `--container-memory`",
		"the agent in a container is killed",
		"the agent of the host is killed",
		"containerd's shim of a container is killed",
		"containerd is killed",
		"containerd is killed and started again",
		"the controller is killed",
	},
}

// TestDocumentImages checks that the table has one row for each problem, in order.
func TestDocumentImages(t *testing.T) { imageEndings.inOrder(t) }

// These parts of messages vary from run to run.
var (
	changing = regexp.MustCompile(`\b(127\.0\.0\.1:\d{2,}|[0-9a-f]{20,}|\d+ms|\d+\.\d+s)`)
	leading  = regexp.MustCompile(`^(gangrun: )?(preflight +error: |run +\S+ +(preflight-failed|succeeded) after \S+ )?`)
)

// lineWith returns the first line of said that has a text, in the form that a table shows. replace has pairs of old
// and new strings.
func lineWith(said, text string, replace ...string) string {
	for line := range strings.Lines(said) {
		if strings.Contains(line, text) {
			line = leading.ReplaceAllString(strings.TrimSpace(line), "")
			line = strings.NewReplacer(append(replace, "|", "\\|")...).Replace(line)
			return changing.ReplaceAllString(line, "...")
		}
	}
	return ""
}
