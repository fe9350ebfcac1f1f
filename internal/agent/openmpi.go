package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/openmpi"
)

// openMPI starts the ranks of a gang through Open MPI's own daemons: mpirun on
// the first host, orted or prted on the others, below the agents like all else.
// Its fields belong to the gang's goroutine, which do reaches.
type openMPI struct {
	g     *gang
	front *front
	do    chan func()
	ended chan struct{}
	wg    sync.WaitGroup

	tmpdir, shm string
	waiting     map[int]prepared // ranks whose shim has not come
	mpirun      *child
	daemons     map[int]*child // by the id of their Spawn
	feeds       map[int]*os.File
	asking      map[int]*net.UnixConn // rsh agents, by the id of their Spawn
	asked       int

	servers []string // PMIx servers of this host
	joined  map[int]bool
	pids    map[int]bool // shims and rsh agents
	words   job.Wireup   // what mpirun has told
}

func newOpenMPI(g *gang) (*openMPI, error) {
	o := &openMPI{
		g: g, do: make(chan func()), ended: make(chan struct{}), waiting: map[int]prepared{}, daemons: map[int]*child{},
		feeds: map[int]*os.File{}, asking: map[int]*net.UnixConn{}, joined: map[int]bool{}, pids: map[int]bool{},
	}
	var err error
	if o.tmpdir, err = os.MkdirTemp(first(lookup(g.env, "TMPDIR"), os.TempDir()), shortLived(os.Getpid())+"*"); err != nil {
		return nil, err
	}
	if o.shm, err = os.MkdirTemp(sharedDir, shortLived(os.Getpid())+"*"); err != nil {
		o.shm = o.tmpdir // slower, and always there
	}
	o.front, err = newFront(o.hear)
	return o, err
}

// shortLived is how the names of an agent's directories begin that do not
// outlive it.
func shortLived(agent int) string { return fmt.Sprintf("gangrun-%d-%d-", os.Getuid(), agent) }

// removeShortLived removes what an agent that was killed has left.
func removeShortLived(agent int) {
	for _, dir := range []string{os.TempDir(), sharedDir} {
		left, _ := filepath.Glob(filepath.Join(dir, shortLived(agent)+"*"))
		for _, path := range left {
			_ = os.RemoveAll(path)
		}
	}
}

// post runs f in the gang's goroutine; false when the gang has ended.
func (o *openMPI) post(f func()) bool {
	done := make(chan struct{})
	select {
	case o.do <- func() { defer close(done); f() }:
		<-done
		return true
	case <-o.ended:
		return false
	}
}

// launch makes the ranks ready for their shims and, on the first host, starts
// mpirun.
func (o *openMPI) launch() error {
	g := o.g
	paths := map[string]program{}
	library := ""
	for _, want := range g.start.Ranks {
		p := g.prepare(want, paths)
		if p.rank != nil {
			g.ranks = append(g.ranks, p.rank)
			o.waiting[p.rank.number] = p
		}
		if p.err != nil {
			return p.err
		}
		if library == "" {
			_, library = mpiOf(p.path, p.attr.Env)
		}
	}
	g.alive = len(g.ranks)
	if m := g.start.Mpirun; m != nil {
		return o.startMpirun(m, library)
	}
	return nil
}

func (o *openMPI) startMpirun(m *wire.Mpirun, library string) error {
	g := o.g
	env := overlay(g.env, texts(m.Env))
	in, ok := openmpi.Find(library, env)
	if !ok || in.Mpirun == "" {
		return fmt.Errorf("mpirun of Open MPI is not on PATH nor beside %q: %w", library, os.ErrNotExist)
	}
	cores, _ := machine()
	// The binary by a name that holds no blank, exists as long as this process,
	// and stays the same when the file is replaced.
	self := fmt.Sprintf("/proc/%d/exe", os.Getpid())
	plan := openmpi.Plan{
		Nodes: m.Nodes, Cores: cores, Interface: string(m.Interface), Agent: []string{self, "rsh"}, Shim: []string{self, "shim"},
		Tmpdir: o.tmpdir, Shm: o.shm, Hostfile: filepath.Join(o.tmpdir, "hosts"),
	}
	for _, n := range m.Node {
		plan.Node = append(plan.Node, int(n))
	}
	for _, n := range m.Apps {
		plan.Apps = append(plan.Apps, int(n))
	}
	argv, hosts, set := plan.Command(in, env)
	if hosts != "" {
		if err := os.WriteFile(plan.Hostfile, []byte(hosts), 0o600); err != nil {
			return err
		}
	}
	env = overlay(env, set, openmpi.DaemonEnv(m.Nodes[0], o.tmpdir, o.shm), []string{o.front.env()})
	var err error
	o.mpirun, err = o.runtime("mpirun", in.Mpirun, argv, env, nil, true)
	if err != nil {
		return fmt.Errorf("start mpirun: %w", err)
	}
	o.wg.Go(func() {
		<-o.mpirun.exited
		o.post(o.mpirunEnded)
	})
	return nil
}

// runtime starts mpirun or a daemon. What it says goes to a log file; with hear
// it is listened to.
func (o *openMPI) runtime(name, path string, argv, env []string, stdin *os.File, hear bool) (*child, error) {
	log, err := os.OpenFile(filepath.Join(string(o.g.start.LogDir), name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if stdin == nil {
		if stdin, err = devNull(); err != nil {
			return nil, errors.Join(err, log.Close(), r.Close(), w.Close())
		}
	}
	ch, err := o.g.children.start(path, argv, &syscall.ProcAttr{
		Dir: string(o.g.start.Workdir), Env: env, Files: []uintptr{stdin.Fd(), w.Fd(), w.Fd()},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	_, _ = stdin.Close(), w.Close()
	if err != nil {
		return nil, errors.Join(err, log.Close(), r.Close())
	}
	o.wg.Go(func() {
		// Ends with the last process that holds the pipe: all are killed before
		// the gang's end.
		defer r.Close()
		defer log.Close()
		var words openmpi.Words
		buffer := make([]byte, 8<<10)
		number := 0
		var rest string
		for {
			n, err := r.Read(buffer)
			_, _ = log.Write(buffer[:n]) // a full disk must not hold up mpirun
			if hear && n > 0 {
				said := words.Feed(slices.Clone(buffer[:n]))
				lines := strings.SplitAfter(rest+string(buffer[:n]), "\n")
				rest = lines[len(lines)-1]
				for _, line := range lines[:len(lines)-1] {
					number++
					o.g.reports.line(o.line(log.Name(), number, line))
				}
				o.post(func() { o.told(said) })
			}
			if err != nil {
				return
			}
		}
	})
	return ch, nil
}

// line is what mpirun said, as evidence.
func (o *openMPI) line(file string, number int, text string) job.Line {
	return job.Line{Source: job.SourceStderr, Host: o.g.host, Rank: -1, File: file, Line: number, Time: time.Now(), Text: clean([]byte(text))}
}

// told notes what mpirun knows better than wait status and sockets do.
func (o *openMPI) told(said []openmpi.Word) {
	for _, w := range said {
		switch w.Kind {
		case openmpi.Improper:
			if w.Rank >= 0 {
				o.words.Improper = append(o.words.Improper, w.Rank)
			}
		case openmpi.Abort:
			if w.Rank >= 0 {
				o.words.Aborts = append(o.words.Aborts, job.Abort{Rank: w.Rank, Code: w.Code})
			}
		default:
			continue
		}
		o.g.reports.wireup(o.wireup())
	}
}

// mpirunEnded ends the gang when ranks are missing that nobody will start now.
func (o *openMPI) mpirunEnded() {
	for id, conn := range o.asking { // nobody asks any more
		_ = conn.Close()
		delete(o.asking, id)
	}
	if len(o.waiting) == 0 && !o.lacking() {
		return
	}
	text := fmt.Sprintf("mpirun ended with code %d before every rank was there; what it said is in %s", o.mpirun.status.ExitStatus(), filepath.Join(string(o.g.start.LogDir), "mpirun.log"))
	if o.mpirun.status.Signaled() {
		text = fmt.Sprintf("mpirun was ended by %s before every rank was there", job.SignalName(int(o.mpirun.status.Signal())))
	}
	o.g.reports.line(job.Line{Source: job.SourceAgent, Host: o.g.host, Rank: -1, Time: time.Now(), Text: text})
	if !o.abandon(text, false) {
		o.g.reports.event(job.Event{Time: time.Now(), Kind: job.KindStop, Host: o.g.host, Text: text})
	}
}

// lacking reports whether the other hosts' daemons were never all started.
func (o *openMPI) lacking() bool {
	return o.g.start.Mpirun != nil && o.asked < len(o.g.start.Mpirun.Nodes)-1
}

// giveUp closes the streams of ranks that will never have a shim.
func (o *openMPI) giveUp() {
	for _, p := range o.waiting {
		p.rank.pump(p.streams, o.g.release)
	}
	clear(o.waiting)
	o.g.alive = 0
}

// abandon gives up the ranks whose shims have not come; false when there is
// none.
func (o *openMPI) abandon(why string, stopped bool) bool {
	numbers := make([]int, 0, len(o.waiting))
	for n := range o.waiting {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		p := o.waiting[n]
		delete(o.waiting, n)
		p.rank.pump(p.streams, o.g.release)
		o.g.alive--
		exit := job.Exit{Rank: n, Host: o.g.host, Status: job.Unstarted, Time: time.Now(), Stopped: stopped || i > 0, Text: why}
		o.g.reports.event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
	}
	return len(numbers) > 0
}

// hear serves a shim or an rsh agent.
func (o *openMPI) hear(conn *net.UnixConn, pid int, hello greeting, words *json.Decoder) {
	o.post(func() { o.pids[pid] = true })
	if hello.Shim {
		o.shim(conn, hello, words)
		return
	}
	id := 0
	if !o.post(func() {
		o.asked++
		id = o.asked
		o.asking[id] = conn
		o.g.reports.spawn(&wire.Spawn{Id: int32(id), Node: hello.Node, Command: hello.Command})
	}) {
		return
	}
	input := io.MultiReader(words.Buffered(), conn)
	for buffer := make([]byte, 4<<10); ; {
		n, err := input.Read(buffer)
		if n > 0 {
			o.g.reports.relay(&wire.Relay{Id: int32(id), Data: slices.Clone(buffer[:n])})
		}
		if err != nil {
			break
		}
	}
	o.g.reports.relay(&wire.Relay{Id: int32(id), End: true})
	// mpirun's daemons see the end of their agent as their own: it stays until
	// the daemon has ended, which relay tells it.
	<-o.ended
}

// shim gives a rank to its shim and stays with it.
func (o *openMPI) shim(conn *net.UnixConn, hello greeting, words *json.Decoder) {
	var p prepared
	found := false
	if !o.post(func() {
		p, found = o.waiting[hello.Rank]
		delete(o.waiting, hello.Rank)
		for _, s := range hello.PMIx {
			if !slices.Contains(o.servers, s) {
				o.servers = append(o.servers, s)
			}
		}
	}) || !found {
		return
	}
	r := p.rank
	what := order{Path: []byte(p.path), Workdir: []byte(p.attr.Dir)}
	for _, entry := range openmpi.RankEnv(o.shm) {
		if name, _, _ := strings.Cut(entry, "="); lookup(o.g.env, name) == "" { // what the user set wins
			what.Env = append(what.Env, []byte(entry))
		}
	}
	what.Env = append(what.Env, o.g.wanted(r.number)...)
	for _, arg := range p.argv {
		what.Argv = append(what.Argv, []byte(arg))
	}
	var said word
	err := sendFiles(conn, p.streams[:3])
	if err == nil {
		err = json.NewEncoder(conn).Encode(what)
	}
	if err == nil {
		err = words.Decode(&said)
	}
	if err == nil && said.Told { // at once: what it is to start comes next
		said = word{}
		err = words.Decode(&said)
	}
	if err == nil && said.Error != "" {
		err = syscall.Errno(said.Errno)
	}
	if err != nil {
		o.post(func() {
			o.waiting[r.number] = p
			one := map[int]prepared{r.number: p}
			all := o.waiting
			o.waiting = one
			o.abandon(describe(&wire.RankStart{Argv: [][]byte{[]byte(p.argv[0])}}, fmt.Errorf("start %q: %w", p.path, err)), false)
			delete(all, r.number)
			o.waiting = all
		})
		return
	}
	var ch *child
	if !o.post(func() {
		ch = o.g.children.adopt(said.PID)
		r.child = ch
		r.pump(p.streams, o.g.release)
		o.g.watch(r)
		if o.g.killing {
			_ = unix.Kill(said.PID, unix.SIGKILL)
		} else if o.g.stopping {
			o.g.children.signal(ch, unix.SIGTERM)
		}
	}) {
		return
	}
	for {
		said = word{}
		if words.Decode(&said) != nil {
			break
		}
		if said.Told {
			o.post(o.ordered)
		}
		if said.Ended {
			o.g.children.settle(ch, unix.WaitStatus(said.Status))
			return
		}
	}
	// The shim was killed. Its rank is this agent's child now, unless it had ended
	// and nobody will ever know how.
	for {
		select {
		case <-ch.exited:
			return
		case <-o.ended:
			return
		case <-time.After(killEvery):
			if _, ok := readProcess(said.PID); !ok && ch.pid > 0 && unix.Kill(ch.pid, 0) == unix.ESRCH {
				o.g.children.settle(ch, unix.WaitStatus(unix.SIGKILL))
			}
		}
	}
}

// ordered tells the controller that Open MPI wants the gang to end.
func (o *openMPI) ordered() {
	if !o.words.Ordered && !o.g.stopping {
		o.words.Ordered = true
		o.g.reports.wireup(o.wireup())
	}
}

// spawn starts a daemon for mpirun, which runs on another host.
func (o *openMPI) spawn(s *wire.Spawn) {
	id := int(s.Id)
	fail := func(err error) {
		o.g.reports.line(job.Line{Source: job.SourceAgent, Host: o.g.host, Rank: -1, Time: time.Now(), Text: "start Open MPI's daemon: " + err.Error()})
		o.g.reports.relay(&wire.Relay{Id: s.Id, End: true, Code: 127})
	}
	argv, set, err := openmpi.ParseDaemon(string(s.Command))
	if err != nil {
		fail(err)
		return
	}
	env := overlay(o.g.env, set, openmpi.DaemonEnv(s.Node, o.tmpdir, o.shm), []string{o.front.env()})
	path, err := lookProgram(argv[0], string(o.g.start.Workdir), env)
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
	ch, err := o.runtime("daemon-"+o.g.host, path, argv, env, stdin, false)
	if err != nil {
		_ = feed.Close()
		fail(err)
		return
	}
	o.daemons[id], o.feeds[id] = ch, feed
	o.wg.Go(func() {
		<-ch.exited
		code := ch.status.ExitStatus()
		if ch.status.Signaled() {
			code = 128 + int(ch.status.Signal())
		}
		o.post(func() {
			if o.g.alive > 0 && !o.g.stopping {
				text := fmt.Sprintf("Open MPI's daemon on %s ended with code %d while its ranks were there: the daemon died", o.g.host, code)
				o.g.reports.line(job.Line{Source: job.SourceAgent, Host: o.g.host, Rank: -1, Time: time.Now(), Text: text})
				o.g.reports.event(job.Event{Time: time.Now(), Kind: job.KindStop, Host: o.g.host, Text: text})
			}
		})
		o.g.reports.relay(&wire.Relay{Id: int32(id), End: true, Code: int32(code)})
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

// own reports whether a process is Open MPI's or gangrun's, not a rank's.
func (o *openMPI) own(pid int) bool {
	if o.mpirun != nil && o.mpirun.pid == pid || o.pids[pid] {
		return true
	}
	for _, d := range o.daemons {
		if d.pid == pid {
			return true
		}
	}
	return false
}

// mark says of the end of a rank what could be seen of it before.
func (o *openMPI) mark(e *job.Exit) {
	if o.joined[e.Rank] {
		e.Joined = job.JoinedInit
	} else if len(o.servers) > 0 && !lingering(o.servers) {
		e.Joined = job.JoinedSilent
	}
}

// look finds ranks that have connected to their PMIx server, and reports
// whether there may be more.
func (o *openMPI) look() (more bool) {
	var unseen []*rank
	for _, r := range o.g.ranks {
		if r.child != nil && !o.joined[r.number] && !closed(r.child.exited) {
			unseen = append(unseen, r)
		}
	}
	if len(unseen) == 0 {
		return len(o.waiting) > 0
	}
	before := len(o.joined)
	inodes := clients(o.servers)
	if len(inodes) > before {
		for _, r := range unseen {
			if holds(r.child.pid, inodes) {
				o.joined[r.number] = true
			}
		}
	}
	if now := len(o.joined); now > before && (before == 0 || now == len(o.g.ranks)) {
		o.g.reports.wireup(o.wireup())
	}
	return len(o.joined) < len(o.g.ranks)
}

func (o *openMPI) wireup() job.Wireup {
	up := o.words
	up.MPI, up.In = job.MPIOpenMPI, []int{}
	for _, r := range o.g.ranks {
		switch {
		case o.joined[r.number]:
			up.In = append(up.In, r.number)
		case len(o.servers) > 0:
			up.Silent = append(up.Silent, r.number)
		}
	}
	return up
}

// close ends what is left and removes its directories.
func (o *openMPI) close() {
	close(o.ended)
	if o.front != nil {
		o.front.close()
	}
	for _, feed := range o.feeds {
		_ = feed.Close()
	}
	o.wg.Wait()
	_ = os.RemoveAll(o.tmpdir)
	_ = os.RemoveAll(o.shm)
}

func (r *reports) spawn(s *wire.Spawn) {
	r.add(func(m *wire.GangReply) { m.Spawns = append(m.Spawns, s) })
}

func (r *reports) relay(s *wire.Relay) {
	r.add(func(m *wire.GangReply) { m.Relays = append(m.Relays, s) })
}
