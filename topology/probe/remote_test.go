package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

// TestWatchRemote checks how a watch of another host's GPUs ends and begins again. It checks the findings if
// gangrun-nvml ends, does not start, or is silent. Only a gangrun-nvml that never prints anything counts as a
// driver that hangs.
func TestWatchRemote(t *testing.T) {
	const xid = `{"kind":"xid","uuid":"GPU-a","xid":79}` + "\n"
	const alive = `{"kind":"alive"}` + "\n"
	for name, test := range map[string]struct {
		prints   []string // the output of each start; "..." at the end means that the program does not end
		stderr   string
		events   int
		findings []string
	}{
		"tells and stays": {[]string{alive + xid + xid + "..."}, "", 2, nil},
		"ends once":       {[]string{alive, alive + xid + "..."}, "", 1, nil},
		"ends always": {[]string{alive + xid}, "gangrun-nvml: warning: GPU GPU-a is not watched any more: GPU is lost\nthere is no GPU to watch\n", 4, []string{
			"gpu-watch GPU GPU-a is not watched any more: GPU is lost",
			`gpu-watch GPUs are no longer watched for XID and ECC errors: gangrun-nvml was started 4 times, and it has ended; it said "there is no GPU to watch"`}},
		"does not start":        {nil, "", 0, []string{"gpu-watch GPUs are not watched for XID and ECC errors: gangrun-nvml was started 4 times, and cannot be started there: no route to host"}},
		"the connection breaks": {[]string{alive + "...", alive + xid + "..."}, "", 1, nil},
		"the driver hangs":      {[]string{"...", alive + xid + "..."}, "", 1, []string{"gpu-driver-hung the GPU driver hangs: gangrun-nvml has printed nothing for 30s and was killed"}},
		"prints rubbish":        {[]string{"hello\n..."}, "", 0, []string{`gpu-watch GPUs are not watched for XID and ECC errors: gangrun-nvml was started 4 times, and it printed what is no event: invalid character 'h' looking for beginning of value: "hello"`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				starts, open := 0, 0
				launch := func(_ context.Context, args ...string) (Remote, error) {
					if fmt.Sprint(args) != "[events GPU-a]" {
						t.Errorf("arguments %q", args)
					}
					starts++
					if len(test.prints) == 0 {
						return Remote{}, errors.New("no route to host")
					}
					open++
					out, in := io.Pipe()
					text, last := test.prints[min(starts, len(test.prints))-1], starts >= len(test.prints)
					go func() {
						stays := len(text) > 3 && text[len(text)-3:] == "..."
						if text == "..." {
							text, stays = "", true
						} else if stays {
							text = text[:len(text)-3]
						}
						_, _ = io.WriteString(in, text)
						if !stays {
							_ = in.Close()
						}
						for stays && last && name != "prints rubbish" { // the last one continues
							time.Sleep(time.Second)
							if _, err := io.WriteString(in, alive); err != nil {
								return
							}
						}
					}()
					return Remote{Stdout: out, Stderr: func() string { return test.stderr }, Close: func() error { open--; return out.Close() }}, nil
				}
				events, findings := 0, []string(nil)
				over := time.AfterFunc(5*time.Minute, cancel)
				defer over.Stop()
				Watch(ctx, Watching{GPUs: []string{"GPU-a"}, Launch: launch}, func(nvml.Event) { events++ }, func(f job.Finding) { findings = append(findings, f.Check+" "+f.Text) })
				if events != test.events || !slices.Equal(findings, test.findings) || open != 0 {
					t.Errorf("%d events, findings %q, %d left open", events, findings, open)
				}
				time.Sleep(2 * time.Second) // lets everything end that is still open
			})
		})
	}
}
