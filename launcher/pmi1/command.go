package pmi1

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gangrun/gangrun/internal/job"
)

// handle answers one command. It returns false if the connection must end.
func (c *conn) handle(m *message) bool {
	cmd := string(m.cmd)
	if m.multi {
		c.spawn.open, c.spawn.name, c.spawn.got, c.spawn.want = true, cmd, 0, 0
		return true
	}
	switch cmd {
	case "init":
		return c.init(m)
	case "abort":
		return c.abort(m)
	}
	s, config := c.server, &c.server.config
	answer, known := answers[cmd]
	if !known {
		return c.refuse(plain(cmd)+"_result", "unknown_command")
	}
	// Only this goroutine changes Joined, or the goroutine of an earlier connection of the rank.
	if s.State(c.rank.number).Joined != job.JoinedInit {
		return c.refuse(answer, "before_init_or_after_finalize")
	}
	switch cmd {
	case "get_maxes":
		return c.say("cmd=", answer, " rc=0 kvsname_max=", strconv.Itoa(maxName),
			" keylen_max=", strconv.Itoa(maxKey), " vallen_max=", strconv.Itoa(maxValue))
	case "get_appnum":
		number := 0
		if config.Appnum != nil {
			number = config.Appnum(c.rank.number)
		}
		return c.say("cmd=", answer, " rc=0 appnum=", strconv.Itoa(number))
	case "get_universe_size":
		size := config.Universe
		if size == 0 {
			size = config.Size
		}
		return c.say("cmd=", answer, " rc=0 size=", strconv.Itoa(size))
	case "get_my_kvsname":
		return c.say("cmd=", answer, " rc=0 kvsname=", config.Name)
	case "put":
		return c.put(answer, m)
	case "get":
		return c.get(answer, m)
	case "barrier_in":
		return c.barrier(answer, m)
	case "publish_name":
		return c.publish(answer, m)
	case "unpublish_name", "lookup_name":
		return c.lookup(answer, m)
	default: // finalize
		s.mu.Lock()
		s.leave(c.rank, c)
		s.mu.Unlock()
		c.set(func(state *State) { state.Joined = job.JoinedFinalized })
		return c.say("cmd=", answer, " rc=0")
	}
}

// answers has the name of the answer to each command that is allowed only after init.
var answers = map[string]string{
	"get_maxes":         "maxes",
	"get_appnum":        "appnum",
	"get_universe_size": "universe_size",
	"get_my_kvsname":    "my_kvsname",
	"put":               "put_result",
	"get":               "get_result",
	"barrier_in":        "barrier_out",
	"publish_name":      "publish_result",
	"unpublish_name":    "unpublish_result",
	"lookup_name":       "lookup_result",
	"finalize":          "finalize_ack",
}

// refuse answers that a command has failed. msg must not contain a space.
func (c *conn) refuse(answer, msg string) bool {
	return c.say("cmd=", answer, " rc=-1 msg=", msg)
}

// init handles the start of a program. Ranks ask for version 1.1, and then use the version in the answer.
func (c *conn) init(m *message) bool {
	version, ok := m.number("pmi_version")
	if !ok || version != 1 {
		return c.say("cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=2")
	}
	s := c.server
	s.mu.Lock()
	again := c.rank.state.Joined == job.JoinedInit && c.rank.state.Waiting
	if !again {
		s.names.forget(c.rank.number)
	}
	s.mu.Unlock()
	if again {
		return c.refuse("response_to_init", "in_a_barrier")
	}
	c.set(func(state *State) {
		state.Unfinalized = state.Unfinalized || state.Joined == job.JoinedInit && !c.begun
		state.Joined = job.JoinedInit
		state.Passed = s.config.Size == 1
	})
	c.begun = true
	return c.say("cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2")
}

// abort records that the rank has called MPI_Abort. There is no answer.
func (c *conn) abort(m *message) bool {
	code, ok := m.number("exitcode")
	if !ok {
		code = 1
	}
	text := strings.ToValidUTF8(string(m.tail("message")), "?")
	c.set(func(state *State) { state.Aborted, state.Code, state.Message = true, code, text })
	return true
}

func (c *conn) put(answer string, m *message) bool {
	key, value := m.get("key"), m.get("value")
	switch {
	case string(m.get("kvsname")) != c.server.config.Name:
		return c.refuse(answer, "kvs_not_found")
	case len(key) == 0 || len(key) > maxKey || !utf8.Valid(key):
		return c.refuse(answer, "bad_key")
	case len(value) > maxAnswer || !utf8.Valid(value):
		return c.refuse(answer, "bad_value")
	case strings.HasPrefix(string(key), "PMI_"):
		return c.refuse(answer, "key_is_reserved")
	}
	c.server.mu.Lock()
	ok := c.server.store.put(c.rank.number, string(key), string(value))
	c.server.mu.Unlock()
	if !ok {
		return c.refuse(answer, "too_much_put")
	}
	return c.say("cmd=", answer, " rc=0")
}

func (c *conn) get(answer string, m *message) bool {
	s, key := c.server, m.get("key")
	if string(m.get("kvsname")) != s.config.Name {
		return c.say("cmd=", answer, " rc=-1 msg=kvs_not_found value=unknown")
	}
	if string(key) == "PMI_process_mapping" {
		if s.config.Mapping != "" {
			return c.say("cmd=", answer, " rc=0 value=", s.config.Mapping)
		}
		return c.say("cmd=", answer, " rc=-1 msg=key_not_found value=unknown")
	}
	s.mu.Lock()
	e, found := s.store.entries[string(key)]
	s.mu.Unlock()
	if !found {
		return c.say("cmd=", answer, " rc=-1 msg=key_not_found value=unknown")
	}
	return c.say("cmd=", answer, " rc=0 value=", e.value)
}

func (c *conn) barrier(answer string, m *message) bool {
	s := c.server
	g, err := parseGroup(string(m.get("group")), s.config.Size)
	if err != nil {
		return c.refuse(answer, "bad_group")
	}
	s.mu.Lock()
	waited := c.rank.state.Waiting
	free, ok := s.arrive(c.rank, g, waiter{c, g.tag, g.tagged})
	changed := s.release(free, g.world)
	waits := c.rank.state.Waiting
	s.mu.Unlock()
	if !ok {
		if g.tagged {
			return c.refuse(answer, "not_in_group tag="+strconv.Itoa(g.tag))
		}
		return c.refuse(answer, "not_in_group")
	}
	if waits && !waited {
		changed = append(changed, c.rank)
	}
	s.changed(changed...)
	s.callEnter()
	return true
}

func (c *conn) publish(answer string, m *message) bool {
	service, port := m.get("service"), m.get("port")
	if len(service) == 0 || len(port) == 0 || len(port) > maxPort {
		return c.say("cmd=", answer, " info=fail rc=-1 msg=bad_name")
	}
	c.server.mu.Lock()
	ok := c.server.names.publish(c.rank.number, string(service), string(port))
	c.server.mu.Unlock()
	if !ok {
		return c.say("cmd=", answer, " info=fail rc=-1 msg=already_published")
	}
	c.server.shareName(Name{Service: string(service), Port: string(port)})
	return c.say("cmd=", answer, " info=ok rc=0 msg=success")
}

// lookup answers lookup_name and unpublish_name.
func (c *conn) lookup(answer string, m *message) bool {
	s, service := c.server, m.get("service")
	s.mu.Lock()
	e, found := s.names[string(service)]
	if !found { // a rank of another host may have published it a moment ago
		s.mu.Unlock()
		s.shareName(Name{Service: string(service), Ask: true})
		s.mu.Lock()
		e, found = s.names[string(service)]
	}
	withdrawn := found && string(m.cmd) == "unpublish_name"
	if withdrawn {
		delete(s.names, string(service))
	}
	s.mu.Unlock()
	if withdrawn {
		s.shareName(Name{Service: string(service)})
	}
	switch {
	case !found:
		return c.say("cmd=", answer, " info=fail rc=-1 msg=service_not_found")
	case string(m.cmd) == "lookup_name":
		return c.say("cmd=", answer, " info=ok rc=0 port=", e.value)
	}
	return c.say("cmd=", answer, " info=ok rc=0 msg=success")
}

// spawnLine reads a line of a command that has several lines. After the last line, it answers that nothing can be
// spawned. To spawn several programs, a rank sends one such command for each program, and gets one answer for all of
// them.
func (c *conn) spawnLine(line []byte) bool {
	key, value, _ := strings.Cut(string(line), "=")
	switch key {
	case "totspawns":
		c.spawn.want, _ = strconv.Atoi(value)
	case "spawnssofar":
		c.spawn.got, _ = strconv.Atoi(value)
	case "endcmd":
		c.spawn.open = false
		if c.spawn.name != "spawn" {
			return c.refuse(plain(c.spawn.name)+"_result", "unknown_command")
		}
		if c.spawn.got >= c.spawn.want {
			return c.refuse("spawn_result", "cannot_spawn_ranks")
		}
	}
	return true
}

// plain returns the part of a command's name that an answer may quote.
func plain(cmd string) string {
	end := strings.IndexFunc(cmd, func(r rune) bool {
		return r != '_' && r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	if end >= 0 {
		cmd = cmd[:end]
	}
	return cmd[:min(len(cmd), maxKey)]
}
