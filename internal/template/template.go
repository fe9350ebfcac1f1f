// Package template expands the templates in the commands of jobs, such as {{.Rank}}.
package template

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fields are the values of the templates in the command of one rank: {{.Rank}} is Rank, and so on.
type Fields struct {
	Rank, LocalRank                 int
	Host, CheckpointDir, ResumeFrom string
}

// fieldNames lists the names of Fields in the order in which hints name them.
var fieldNames = []string{"Rank", "LocalRank", "Host", "CheckpointDir", "ResumeFrom"}

// value returns the text of a field, and whether {{if}} takes it for true: 0
// and the empty text are false.
func (f Fields) value(name string) (text string, isTrue bool) {
	switch name {
	case "Rank":
		return strconv.Itoa(f.Rank), f.Rank != 0
	case "LocalRank":
		return strconv.Itoa(f.LocalRank), f.LocalRank != 0
	case "Host":
		text = f.Host
	case "CheckpointDir":
		text = f.CheckpointDir
	case "ResumeFrom":
		text = f.ResumeFrom
	}
	return text, text != ""
}

// Error is the error of a template in a command that cannot be expanded.
type Error struct {
	Template string // as in "{{.Foo}}"
	Problem  string // what is wrong, as in "names no field of gangrun's"
	Advice   string // what to write instead
}

// Error quotes the template.
func (e *Error) Error() string {
	return fmt.Sprintf("the template %q in the command %s", e.Template, e.Problem)
}

// Hint says what to write instead.
func (e *Error) Hint() string { return e.Advice }

// Check returns a *Error for the first template of a command that Expand could not
// expand.
func Check(command []string) error {
	_, err := Expand(command, Fields{})
	return err
}

// Expand returns a command with its templates expanded:
//
//	{{.Rank}}                     a field of Fields
//	{{if .ResumeFrom}}a{{end}}    a, unless the field is 0 or empty
//	{{if .Rank}}a{{else}}b{{end}} a, or b if the field is 0 or empty
//	{{"{{"}}                      two braces
//
// A condition may begin in one argument and end in a later one. Other text in braces is not
// changed: it may mean something to the program. If a condition makes an argument empty, Expand
// removes the argument; it never removes the first one, the program. If a field makes an argument
// empty, the argument stays.
func Expand(command []string, fields Fields) ([]string, error) {
	out := make([]string, 0, len(command))
	e := expander{fields: fields}
	for i, arg := range command {
		text, kept, err := e.argument(arg)
		if err != nil {
			return nil, err
		}
		if i == 0 || kept {
			out = append(out, text)
		}
	}
	if n := len(e.open); n > 0 {
		return nil, &Error{e.open[n-1].action, "has no {{end}}", "close it with {{end}}, in the same argument or in a later one"}
	}
	return out, nil
}

// expander expands the arguments of one command in their order.
type expander struct {
	fields Fields
	open   []openCondition // the {{if}}s that have no {{end}} yet
}

// openCondition is an {{if}}.
type openCondition struct {
	action string
	holds  bool // what follows is wanted
	turned bool // its {{else}} has come
}

// wanted reports whether every open condition holds.
func (e *expander) wanted() bool {
	return !slices.ContainsFunc(e.open, func(c openCondition) bool { return !c.holds })
}

// argument expands one argument. kept is false if the argument is to be removed.
func (e *expander) argument(arg string) (text string, kept bool, err error) {
	var b strings.Builder
	conditional := !e.wanted()
	for rest := arg; rest != ""; {
		plain, action, after := nextAction(rest)
		if e.wanted() {
			b.WriteString(plain)
		}
		if rest = after; action == "" {
			continue
		}
		condition, problem, advice := e.act(action, &b)
		if problem != "" {
			return "", false, &Error{cut(action), problem, advice}
		}
		conditional = conditional || condition
	}
	return b.String(), !conditional || b.Len() > 0, nil
}

// nextAction splits text at its first action, which begins with {{ and ends with }}. If the end is
// missing, the action reaches to the end of the text. Of three opening braces, the last two begin
// the action.
func nextAction(text string) (plain, action, after string) {
	at := strings.Index(text, "{{")
	if at < 0 {
		return text, "", ""
	}
	for strings.HasPrefix(text[at+1:], "{{") {
		at++
	}
	plain, rest := text[:at], text[at:]
	if strings.HasPrefix(rest, literal) {
		return plain, literal, rest[len(literal):]
	}
	end := strings.Index(rest, "}}")
	if inner := strings.Index(rest[2:], "{{"); inner >= 0 && (end < 0 || inner+2 < end) {
		return plain, rest[:inner+2], rest[inner+2:] // another one begins before it is closed
	}
	if end < 0 {
		return plain, rest, ""
	}
	return plain, rest[:end+2], rest[end+2:]
}

// literal is the action that stands for two braces.
const literal = `{{"{{"}}`

// act does what an action says, and reports whether it belongs to a condition. It writes an action
// that is not gangrun's unchanged.
func (e *expander) act(action string, b *strings.Builder) (condition bool, problem, advice string) {
	words, closed := strings.CutSuffix(strings.TrimPrefix(action, "{{"), "}}")
	words = strings.Trim(words, " \t")
	verb, of, _ := strings.Cut(words, " ")
	of = strings.Trim(of, " \t")
	switch {
	case action == literal:
		if e.wanted() {
			b.WriteString("{{")
		}
		return false, "", ""
	case !closed && (isField(words) || verb == "if" && (of == "" || isField(of))):
		return true, "is never closed", "write " + forms + "; a shell, and a command in one line, need quotes around a template that has a blank"
	case isField(words):
		if !slices.Contains(fieldNames, words[1:]) {
			return true, "names no field of gangrun's", hintOf(action)
		}
		if text, _ := e.fields.value(words[1:]); e.wanted() {
			b.WriteString(text)
		}
		return false, "", ""
	case verb == "if" && isField(of):
		if !slices.Contains(fieldNames, of[1:]) {
			return true, "names no field of gangrun's", hintOf(action)
		}
		_, holds := e.fields.value(of[1:])
		e.open = append(e.open, openCondition{action: action, holds: holds})
		return true, "", ""
	case (words == "else" || words == "end" || verb == "else") && len(e.open) > 0:
		return true, e.turn(words), "write " + forms
	case mentions(words):
		return true, "is more than gangrun can expand", hintOf(action)
	}
	if e.wanted() {
		b.WriteString(action)
	}
	return false, "", ""
}

// turn does what {{else}} and {{end}} say to the innermost condition.
func (e *expander) turn(words string) (problem string) {
	last := &e.open[len(e.open)-1]
	switch {
	case words == "end":
		e.open = e.open[:len(e.open)-1]
	case words != "else":
		return "stands where only {{else}} may"
	case last.turned:
		return "is the second of one {{if}}"
	default:
		last.holds, last.turned = !last.holds, true
	}
	return ""
}

// forms are the templates there are.
const forms = "{{.Field}}, {{if .Field}}...{{end}} or {{if .Field}}...{{else}}...{{end}}"

// hintOf names the fields, and how an action is passed on as it stands.
func hintOf(action string) string {
	return fmt.Sprintf("the fields are .%s, as in %s; to pass it on as it stands, write %s", strings.Join(fieldNames, ", ."), forms, literal+action[2:])
}

// cut shortens an action for a message: without its end, it may reach far.
func cut(action string) string {
	const most = 60
	if runes := []rune(action); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return action
}

// isField reports whether words begin as a field does, as in ".Rank".
func isField(words string) bool {
	return len(words) > 1 && words[0] == '.' && (words[1] == '_' || words[1]|0x20 >= 'a' && words[1]|0x20 <= 'z')
}

// mentions reports whether one of the words is a field.
func mentions(words string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(words, func(r rune) bool { return strings.ContainsRune(" \t()|,", r) }), func(word string) bool {
		return isField(word) && slices.Contains(fieldNames, word[1:])
	})
}
