package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// Devices asks hosts for their GPUs and NICs. It returns the hosts with their GPUs and NICs, and findings about
// the GPUs and NICs. If a host does not answer, Devices returns that host unchanged, and an error.
func (l *Launcher) Devices(ctx context.Context, hosts []job.Host) (found []job.Host, findings []job.Finding, err error) {
	found = make([]job.Host, len(hosts))
	all := make([][]job.Finding, len(hosts))
	err = agents.Each(len(hosts), func(i int) error {
		found[i] = hosts[i]
		fail := func(err error) error { return fmt.Errorf("look for the GPUs of %s: %w", hosts[i].Name, err) }
		a, err := l.pool.Get(ctx, hosts[i].Name)
		if err != nil {
			return err
		}
		reply, err := a.Client.Devices(ctx, &wire.DevicesRequest{Nvml: []byte(a.NVML.Path)})
		if err == nil && reply.Driven && !a.Link.Local && l.opts.Bring != nil && !a.NVML.Tried {
			a.NVML.Tried = true
			if a.NVML.Path, err = l.opts.Bring(ctx, hosts[i].Name); err == nil {
				reply, err = a.Client.Devices(ctx, &wire.DevicesRequest{Nvml: []byte(a.NVML.Path)})
			} else {
				all[i] = append(all[i], job.Finding{Check: "gpus", Severity: job.SeverityNote, Host: hosts[i].Name,
					Text: "gangrun-nvml cannot be brought there, and nvidia-smi is read instead: " + err.Error()})
				err = nil
			}
		}
		if err != nil {
			return fail(a.Failed(ctx, err))
		}
		var h job.Host
		var more []job.Finding
		if err := errors.Join(json.Unmarshal(reply.Host, &h), json.Unmarshal(reply.Findings, &more)); err != nil {
			return fail(err)
		}
		all[i] = append(all[i], more...)
		found[i].Devices, found[i].Links = h.Devices, h.Links
		if len(h.NICs) > 0 {
			found[i].NICs = h.NICs
		}
		return nil
	})
	for _, f := range all {
		findings = append(findings, f...)
	}
	return found, findings, err
}
