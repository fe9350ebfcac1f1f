package openmpi

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// RankEnv returns variables that make a rank put its shared memory segments into the directory shm. They
// override the variables that mpirun and the daemon set. Two simulated hosts on one machine must have different
// directories, because the names of their segments are equal.
func RankEnv(shm string) []string {
	if shm == "" {
		return nil
	}
	return []string{"OMPI_MCA_btl_vader_backing_directory=" + shm, "OMPI_MCA_btl_sm_backing_directory=" + shm}
}

// DaemonEnv returns variables for the daemon on a node, or for mpirun on node 0. They override the user's
// variables. Each node has its own tmpdir, which is removed when the gang ends. The name of the node
// distinguishes simulated hosts on one machine. Pass shm only for daemons, because mpirun would pass it on to
// the ranks of all nodes.
func DaemonEnv(node, tmpdir, shm string) []string {
	env := []string{"PMIX_HOSTNAME=" + node}
	if tmpdir != "" {
		env = append(env, "OMPI_MCA_orte_tmpdir_base="+tmpdir, "PRTE_MCA_prte_tmpdir_base="+tmpdir)
	}
	if !loopback(node) {
		env = append(env, RankEnv(shm)...)
	}
	return env
}

// loopback reports whether the name of a node means this host on every host.
func loopback(node string) bool {
	addr, err := netip.ParseAddr(node)
	return node == "localhost" || err == nil && addr.IsLoopback()
}

// own lists the parameters that differ between nodes. DaemonEnv sets them for each node. mpirun passes the values for
// its own node, which are wrong for other nodes.
var own = []string{
	"orte_tmpdir_base", "prte_tmpdir_base",
	"btl_vader_backing_directory", "btl_sm_backing_directory",
}

// ParseDaemon parses the shell command by which mpirun starts a daemon through its rsh agent. The command
// consists of assignments, exports, and one call of orted or prted; ParseDaemon refuses any other. argv is the
// argv of the daemon, without the parameters that are meant only for the node of mpirun. env has the variables
// to set, as NAME=VALUE. In a value, $NAME stands for the value that NAME had before (see Expand).
func ParseDaemon(line string) (argv, env []string, err error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(asRunes(line)), "")
	if err != nil {
		return nil, nil, fmt.Errorf("mpirun's command for its daemon, %q, is not one of a shell: %w", line, err)
	}
	command := daemonCommand{set: map[string]bool{}}
	if err := command.statements(file.Stmts); err != nil {
		return nil, nil, fmt.Errorf("mpirun's command for its daemon, %q: %w", line, err)
	}
	if command.argv == nil {
		return nil, nil, fmt.Errorf("mpirun's command for its daemon, %q, starts neither orted nor prted", line)
	}
	return asBytes(withoutOwn(command.argv)), asBytes(command.env), nil
}

// withoutOwn returns argv without the parameters that differ between nodes.
func withoutOwn(argv []string) []string {
	kept := argv[:1:1]
	for i := 1; i < len(argv); i++ {
		switch argv[i] {
		case "-mca", "--mca", "-prtemca", "--prtemca", "-pmixmca", "--pmixmca":
			if i+2 < len(argv) {
				if !slices.Contains(own, argv[i+1]) {
					kept = append(kept, argv[i:i+3]...)
				}
				i += 2
				continue
			}
		}
		kept = append(kept, argv[i])
	}
	return kept
}

// daemonCommand is the part of a command that was parsed so far.
type daemonCommand struct {
	argv []string
	env  []string
	set  map[string]bool // the names in env
}

func (c *daemonCommand) statements(stmts []*syntax.Stmt) error {
	for _, stmt := range stmts {
		if stmt.Negated || stmt.Background || stmt.Coprocess || len(stmt.Redirs) > 0 {
			return fmt.Errorf("a redirection, a negation or a command in the background is not expected")
		}
		switch cmd := stmt.Cmd.(type) {
		case *syntax.CallExpr:
			if err := c.call(cmd); err != nil {
				return err
			}
		case *syntax.Subshell: // mpirun writes a subshell for users of sh and ksh
			if err := c.statements(cmd.Stmts); err != nil {
				return err
			}
		case *syntax.BinaryCmd:
			if !profile(stmt) {
				return errors.New("a condition is not expected, but for the one that reads .profile")
			}
		default:
			return errors.New("only assignments, exports and one daemon are expected")
		}
	}
	return nil
}

// profile reports whether a statement is the statement that mpirun prepends for users of sh and ksh.
func profile(stmt *syntax.Stmt) bool {
	var text strings.Builder
	err := syntax.NewPrinter().Print(&text, stmt)
	return err == nil && strings.TrimSpace(text.String()) == "test ! -r ./.profile || . ./.profile"
}

func (c *daemonCommand) call(cmd *syntax.CallExpr) error {
	if c.argv != nil {
		return errors.New("a second command is not expected after the daemon")
	}
	for _, assign := range cmd.Assigns {
		if assign.Append || assign.Naked || assign.Index != nil || assign.Array != nil || assign.Name == nil {
			return errors.New("only plain assignments are expected")
		}
		text, err := c.word(assign.Value, assign.Name.Value)
		if err != nil {
			return err
		}
		c.assign(assign.Name.Value, text)
	}
	if len(cmd.Args) == 0 {
		return nil
	}
	var argv []string
	for _, word := range cmd.Args {
		text, err := c.word(word, "")
		if err != nil {
			return err
		}
		argv = append(argv, text)
	}
	switch path.Base(argv[0]) {
	case "orted", "prted":
		c.argv = argv
		return nil
	case "export":
		for _, arg := range argv[1:] {
			name, text, assigned := strings.Cut(arg, "=")
			if !syntax.ValidName(name) {
				return fmt.Errorf("%q cannot be exported", arg)
			}
			if assigned {
				c.assign(name, text)
			} else if !c.set[name] {
				return fmt.Errorf("%q is exported but not set", name)
			}
		}
		return nil
	}
	return fmt.Errorf("the command %q is not expected: it must be orted or prted", argv[0])
}

func (c *daemonCommand) assign(name, text string) {
	c.env = slices.DeleteFunc(c.env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
	c.env = append(c.env, name+"="+text)
	c.set[name] = true
}

// word expands a shell word. The word may contain only text, quotes, and the former value of the variable that is being
// assigned.
func (c *daemonCommand) word(word *syntax.Word, assigned string) (string, error) {
	if word == nil {
		return "", nil
	}
	var text strings.Builder
	err := c.parts(&text, word.Parts, assigned, false)
	return text.String(), err
}

func (c *daemonCommand) parts(text *strings.Builder, parts []syntax.WordPart, assigned string, quoted bool) error {
	for _, part := range parts {
		literal := ""
		switch part := part.(type) {
		case *syntax.Lit:
			unescaped, err := unescape(part.Value, quoted)
			if err != nil {
				return err
			}
			literal = unescaped
		case *syntax.SglQuoted:
			literal = part.Value
		case *syntax.DblQuoted:
			if err := c.parts(text, part.Parts, assigned, true); err != nil {
				return err
			}
			continue
		case *syntax.ParamExp:
			if !formerValue(part, assigned) || c.set[assigned] {
				return errors.New("only a variable's own former value may be used, and that once")
			}
			text.WriteString("$" + assigned)
			continue
		default:
			return errors.New("commands and sums within a word are not expected")
		}
		if assigned != "" && strings.Contains(literal, "$") {
			return fmt.Errorf("a literal $ in the value of %q is not expected", assigned)
		}
		if strings.ContainsRune(literal, 0) {
			return errors.New("a word with a NUL in it is not expected")
		}
		text.WriteString(literal)
	}
	return nil
}

// formerValue reports whether an expansion is $NAME, ${NAME} or ${NAME:-}.
func formerValue(part *syntax.ParamExp, name string) bool {
	if part.Param == nil || name == "" || part.Param.Value != name {
		return false
	}
	var text strings.Builder
	if err := syntax.NewPrinter().Print(&text, part); err != nil {
		return false
	}
	return slices.Contains([]string{"$" + name, "${" + name + "}", "${" + name + ":-}"}, text.String())
}

// unescape removes the backslashes from a literal. It refuses an unquoted pattern or tilde,
// which a shell would expand.
func unescape(literal string, quoted bool) (string, error) {
	var text strings.Builder
	for i := 0; i < len(literal); i++ {
		char := literal[i]
		if char == '\\' && i+1 < len(literal) {
			next := literal[i+1]
			switch {
			case next == '\n':
				i++
				continue
			case !quoted || strings.IndexByte("$`\"\\", next) >= 0:
				text.WriteByte(next)
				i++
				continue
			}
		} else if !quoted && strings.IndexByte("*?~{", char) >= 0 {
			return "", fmt.Errorf("a pattern in %q is not expected", literal)
		}
		text.WriteByte(char)
	}
	return text.String(), nil
}

// Expand replaces each $NAME in the values of env by the value of NAME in base. The variables in env are those
// that ParseDaemon has returned. base is a list of NAME=VALUE.
func Expand(env, base []string) []string {
	expanded := make([]string, 0, len(env))
	for _, entry := range env {
		name, text, _ := strings.Cut(entry, "=")
		expanded = append(expanded, name+"="+strings.ReplaceAll(text, "$"+name, value(base, name)))
	}
	return expanded
}
