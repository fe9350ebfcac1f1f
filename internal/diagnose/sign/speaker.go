package sign

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/reason"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

var (
	// speaker matches a line that begins with the name of a supervising program. The groups are the name and the words
	// after it.
	speaker = textmatch.New(`^(?:\[?\d[\d:.,TZ -]{3,30}\]? )?(?:\[([A-Za-z][\w-]{2,20}(?: [\w-]{2,20})?)\]:?|([A-Za-z][\w-]{2,20}(?: [a-z][\w-]{2,20})?):) +(\S.*)$`)
	// noSpeaker matches words that are no names of supervising programs: levels, ranks, launchers, and words of reports
	// that other code reads.
	noSpeaker = textmatch.New(`(?i)^(?:(?:info|warn|warning|error|fatal|debug|critical|note|notice|hint|exception|abort|stop|usage|caused by|rank|worker|pe|task|proc|process|node|host|step|epoch|iter\w*|trial|chain|part|stage|srun|sbatch|slurmstepd|salloc|mpirun|mpiexec|prterun|orterun|torchrun|bash|sh|kernel|make|state|reason|message|status|hint|detail|type|events?|ssh|scancel|qdel)(?:[ _-]?\d*)?|\w*(?:error|exception))$`)
	// endsJob matches the words with which a supervising program says that it ends the job.
	endsJob = textmatch.New(`(?i)\b(?:kill(?:s|ed|ing)|abort(?:s|ed|ing)|terminat(?:es|ed|ing)|stop(?:s|ped|ping)|end(?:s|ed|ing) (?:the|this|it)\b|shutting down|cancel(?:s|led|ling)|scancel|qdel|giving up|gave up|sending SIG\w+|sent SIG\w+|SIGTERM to|SIGKILL to|evict(?:s|ed|ing)|exit(?:ing)? (?:code |status )?[1-9]|exiting)\b`)
)

const (
	// speakerLast is how many of the last lines of a log are searched for the lines of a supervising program.
	speakerLast = 120
	// speakerAfter is how many lines may follow the last line of the supervising program.
	speakerAfter = 12
)

// supervisors adds signs for what supervising programs have found. Near the end of a log, such a program says in lines
// of its own what it has found and that it ends the job.
func (f *finder) supervisors() {
	type speech struct {
		first, last int
		name        int // the length of the speaker's name
		text        string
		covered     bool
	}
	said := map[string]*speech{}
	from := max(0, len(f.Lines)-speakerLast)
	for i := from; i < len(f.Lines); i++ {
		t := f.Lines[i]
		m := speaker.FindStringSubmatch(t)
		if m == nil || len(t) > 300 {
			continue
		}
		name := m[1] + m[2]
		if noSpeaker.MatchString(name) {
			continue
		}
		s := said[name]
		if s == nil {
			s = &speech{first: i, name: len(name), text: name}
			said[name] = s
		}
		s.last, s.covered = i, s.covered || f.covered[i]
		if words := m[3]; !outlook.Figures(words) && len(s.text) < 1200 {
			s.text += "; " + words
		}
	}
	for _, s := range said {
		if s.covered || len(f.Lines)-1-s.last > speakerAfter || !endsJob.MatchString(s.text[s.name:]) {
			continue
		}
		signature := reason.Verdict(s.text)
		if signature == "" {
			continue
		}
		at := s.first
		for i := s.first; i <= s.last; i++ {
			if reason.Verdict(f.Lines[i]) == signature {
				at = i
				break
			}
		}
		g := &Sign{Text: f.Lines[at], Title: logtext.Short(f.Lines[at]+strings.TrimSuffix("; "+f.Lines[s.last], "; "+f.Lines[at]), 300), From: at, At: at, To: at + 1, Plain: true, Rule: rules.Named(signature)}
		f.covered[at] = true
		f.keep(g)
	}
}
