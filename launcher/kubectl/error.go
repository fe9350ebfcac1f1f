package kubectl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/text"
)

// Error reports that kubectl could not run a command in a pod.
type Error struct {
	Pod  string
	Text string // what kubectl has printed

	hint    string
	lasting bool
}

// Error names the pod, and repeats what kubectl has printed.
func (e *Error) Error() string { return fmt.Sprintf("pod %q: kubectl exec: %s", e.Pod, e.Text) }

// Hint says what to do next.
func (e *Error) Hint() string { return e.hint }

// Lasting returns true if a person has to fix the problem.
func (e *Error) Lasting() bool { return e.lasting }

// reasons has texts that kubectl may print, and what to do about them. The first entry that matches is used. In a hint,
// POD stands for the name of the pod.
var reasons = []struct {
	Needles []string // kubectl prints one of these
	hint    string
	lasting bool
}{
	{Needles: []string{"container not found", "container is not running", "not created or running", "completed pod", "does not have a host assigned"},
		hint: "see why the pod does not run: kubectl describe pod POD"},
	{Needles: []string{"exec failed"}, lasting: true,
		hint: "see whether the image of the pod has sh, which gangrun needs there: kubectl exec POD -- sh -c true"},
	{Needles: []string{"(NotFound)"},
		hint: "the hosts of --launcher kubectl are names of pods in one namespace; see: kubectl get pods"},
	{Needles: []string{"(Forbidden)"}, lasting: true,
		hint: "let the user or service account of kubectl get pods and create pods/exec; see: kubectl auth can-i create pods/POD --subresource=exec"},
	{Needles: []string{"(Unauthorized)"}, lasting: true,
		hint: "log kubectl in to the cluster; see: kubectl get pods"},
}

// exited matches the line that kubectl prints if the command itself has ended with a code other than 0.
var exited = regexp.MustCompile(`^command terminated with (?:non-zero )?exit code`)

// maxText limits how many characters an error quotes of kubectl's output.
const maxText = 400

// errorOf returns the error for a kubectl that has ended with a code other than 0. said is what kubectl has printed.
// errorOf returns nil if the code is the exit code of the command in the pod.
func errorOf(pod, said string) error {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	last := lines[len(lines)-1]
	ran := exited.MatchString(last)
	if ran && len(lines) > 1 {
		last = lines[len(lines)-2]
	}
	if ran && !strings.HasPrefix(last, "OCI runtime exec failed") {
		return nil
	}
	if last == "" {
		last = "it says nothing"
	}
	e := &Error{Pod: pod, Text: text.Clip(text.Printable(last), maxText), hint: "to test the connection: kubectl exec " + pod + " -- true"}
	for _, r := range reasons {
		if slices.ContainsFunc(r.Needles, func(needle string) bool { return strings.Contains(last, needle) }) {
			e.hint, e.lasting = strings.ReplaceAll(r.hint, "POD", pod), r.lasting
			break
		}
	}
	return e
}
