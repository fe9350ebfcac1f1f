package message

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Level is how bad a record of a log is.
type Level int

// The levels of records. NoLevel is that of a line that is no record.
const (
	NoLevel Level = iota
	Info          // also for notice, debug and trace
	Warning
	Error
	Fatal
)

var (
	// glog matches the head of a record of glog, absl and klog.
	glog = textmatch.New(`^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\]]{1,80}\] `)
	// xla matches the head of a record of TensorFlow, XLA or Horovod that is no error.
	xla = textmatch.New(`^\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: ([IW]) `)
	// leveled matches the head of a record that has its level after a time or in brackets.
	leveled = textmatch.New(`^(?:\W*\d{2,4}[-/.:]\d\d[-/.:T ]?\d[\d:.,TZ+-]*(?: [\d:.,]+Z?)?[\]|:,]? *|(?:\[[^\[\]]{1,40}\] ?){1,4})(?:[-|:] ?)?(?:\[[^\[\]]{1,40}\] ?){0,3}(?:[-|:] ?)?(?:[\w.:-]{1,40} ){0,2}(?:[-|:] )?[\[<(]?(?i:(debug|trace|info|notice)|(warn|warning)|(error|erro|err|severe)|(fatal|critical|panic|alert|emerg))[\])>]?(?:[:|]| -| |$)`)
	// logfmt matches the level in a record of the form key=value.
	logfmt = textmatch.New(`(?:^| )(?:level|lvl|severity)="?(?i:(debug|trace|info|notice)|(warn|warning)|(error|err)|(fatal|critical|panic|dpanic|alert|emerg))"?(?: |$)`)
	// logfmtText and logfmtError match the text and the error in such a record.
	logfmtText  = textmatch.New(`(?:^| )(?:msg|message|event)=(?:"((?:[^"\\]|\\.)*)"|(\S+))`)
	logfmtError = textmatch.New(`(?:^| )(?:err|error|exception|reason|cause)=(?:"((?:[^"\\]|\\.)*)"|(\S+))`)
)

// Record returns the level of a line that is the record of a log. It returns NoLevel for other lines. text is the
// message of a record in JSON or of the form key=value. For all other lines, text is empty, because the line itself has
// the message.
func Record(t string) (level Level, text string) {
	if len(t) > 4*announceBytes {
		return NoLevel, ""
	}
	if at := strings.IndexByte(t, '{'); at >= 0 && at < 40 && strings.HasSuffix(strings.TrimRight(t, " \r"), "}") && strings.Contains(t, `":`) {
		return jsonRecord(t[at:])
	}
	for _, p := range []*textmatch.Pattern{glog, xla} {
		if m := p.FindStringSubmatch(t); m != nil {
			return map[string]Level{"I": Info, "W": Warning, "E": Error, "F": Fatal}[m[1]], ""
		}
	}
	if strings.Contains(t, "l=") || strings.Contains(t, "severity=") {
		if m := logfmt.FindStringSubmatch(t); m != nil {
			return levelOf(m), join(value(logfmtText, t), value(logfmtError, t))
		}
	}
	if m := leveled.FindStringSubmatch(t[:min(len(t), 160)]); m != nil {
		return levelOf(m), ""
	}
	return NoLevel, ""
}

func levelOf(m []string) Level {
	for i, l := range []Level{Info, Warning, Error, Fatal} {
		if m[i+1] != "" {
			return l
		}
	}
	return NoLevel
}

func value(p *textmatch.Pattern, t string) string {
	m := p.FindStringSubmatch(t)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1]+m[2], `\"`, `"`)
}

// join joins the text of a record and the error that the record names.
func join(text, err string) string {
	if err == "" || strings.Contains(text, err) {
		return text
	}
	if text == "" {
		return err
	}
	return text + ": " + err
}

// jsonRecord reads a record in JSON.
func jsonRecord(t string) (Level, string) {
	var fields map[string]any
	if json.Unmarshal([]byte(t), &fields) != nil {
		return NoLevel, ""
	}
	get := func(names ...string) string {
		for _, n := range names {
			if s, ok := fields[n].(string); ok && s != "" {
				return s
			}
		}
		return ""
	}
	level := NoLevel
	switch strings.ToLower(get("level", "severity", "lvl", "levelname", "log.level")) {
	case "debug", "trace", "info", "notice":
		level = Info
	case "warn", "warning":
		level = Warning
	case "error", "err", "severe":
		level = Error
	case "fatal", "critical", "panic", "dpanic", "alert", "emergency", "emerg":
		level = Fatal
	case "":
		return NoLevel, ""
	}
	text := join(get("msg", "message", "event", "text"), get("err", "error", "exception", "exc", "reason", "cause", "detail"))
	if len(text) > announceBytes*2 {
		text = text[:announceBytes*2]
	}
	return level, text
}

// Calls returns the line in which R lists the calls through which an error passed, or an empty text.
func Calls(text []string) string {
	for _, t := range text {
		if strings.HasPrefix(t, "Calls: ") {
			return t
		}
	}
	return ""
}

// Last returns the last line of a text that may say what went wrong. It skips blank lines, separators, and lines that
// match Teardown or Aside. It returns an empty text if no line is left.
func Last(text []string) string {
	for _, t := range slices.Backward(text) {
		if strings.TrimSpace(t) != "" && !Teardown.MatchString(t) && !Separator(t) && !Aside.MatchString(t) {
			return t
		}
	}
	return ""
}

// FromR reports whether a line may be the error message of a program in R.
func FromR(t string) bool { return fromR.MatchString(t) }

var fromR = textmatch.New(`^Error in |\bcannot open (?:the connection|(?:compressed )?file)`)
