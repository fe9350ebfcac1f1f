package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/report"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/openmpi"
)

// spawn starts a daemon for mpirun, which runs on another host.
func (o *openMPI) spawn(s *wire.Spawn) {
	id := int(s.Id)
	if o.daemons[id] != nil {
		return // a controller that has taken over asks again
	}
	fail := func(err error) {
		o.g.reports.Lines(job.Line{Source: job.SourceAgent, Host: o.g.host, Rank: -1, Time: hostclock.Now(), Text: "start Open MPI's daemon: " + err.Error()})
		reportRelay(o.g.reports, &wire.Relay{Id: s.Id, End: true, Code: 127})
	}
	argv, set, err := openmpi.ParseDaemon(string(s.Command))
	if err != nil {
		fail(err)
		return
	}
	if _, err := o.self(); err != nil {
		fail(err)
		return
	}
	env := environ.Overlay(o.g.env, openmpi.Expand(set, o.g.env), openmpi.DaemonEnv(s.Node, o.tmpdir, o.shm), []string{o.front.env()})
	path, err := process.LookPath(argv[0], string(o.g.start.Workdir), env)
	if err != nil {
		if in, ok := openmpi.Find("", env); ok && in.Daemon != "" && filepath.Base(in.Daemon) == filepath.Base(argv[0]) {
			path, err = in.Daemon, nil
		}
	}
	if err != nil {
		fail(err)
		return
	}
	stdin, feed, err := os.Pipe()
	if err != nil {
		fail(err)
		return
	}
	ch, err := o.runtime(path, argv, env, stdin, true)
	if err != nil {
		_ = feed.Close()
		fail(err)
		return
	}
	o.daemons[id], o.feeds[id] = ch, feed
	o.wg.Go(func() {
		<-ch.Exited
		code := ch.Status.ExitStatus()
		if ch.Status.Signaled() {
			code = 128 + int(ch.Status.Signal())
		}
		o.post(func() {
			o.daemonLost()
		})
		reportRelay(o.g.reports, &wire.Relay{Id: int32(id), End: true, Code: int32(code)})
	})
}

// relay passes on what goes to a daemon of this host, or comes from one of
// another.
func (o *openMPI) relay(r *wire.Relay) {
	id := int(r.Id)
	if feed := o.feeds[id]; feed != nil {
		if len(r.Data) > 0 {
			_ = feed.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = feed.Write(r.Data) // a key of some bytes; a daemon that does not read it says so itself
		}
		if r.End {
			_ = feed.Close()
			delete(o.feeds, id)
		}
		return
	}
	if conn := o.asking[id]; conn != nil && r.End {
		_ = json.NewEncoder(conn).Encode(struct{ Code int }{int(r.Code)})
		delete(o.asking, id)
	}
}

func reportSpawn(r *report.Queue, s *wire.Spawn) {
	r.Add(func(m *wire.GangReply) { m.Spawns = append(m.Spawns, s) })
}

func reportRelay(r *report.Queue, s *wire.Relay) {
	r.Add(func(m *wire.GangReply) { m.Relays = append(m.Relays, s) })
}
