package diagnose

import (
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/worldsize"
	"github.com/gangrun/gangrun/internal/job"
)

// tooFew changes the rule of a suspect to too-few-ranks if the error message, the exception or the last line of its
// rank asks for more ranks than the gang has.
func (s *suspect) tooFew(e job.Evidence) {
	own := s.rule.Is(rule.Mute) || s.sign != nil && (s.sign.Class != "" || s.sign.Plain)
	if e.Ranks == 0 || s.member == nil || s.exit == nil || s.exit.Status != job.Exited || s.exit.Good() || s.rule.Is(rule.Cascade) || !own {
		return
	}
	said := s.lastWords()
	if s.sign != nil && !s.rule.Is(rule.Mute) {
		said = s.sign.Text
	}
	first, _, _ := strings.Cut(said, "\n")
	w, ok := worldsize.Wanted(first, e.Ranks)
	if !ok || w.Ranks == 0 || worldsize.Doubtful(w.Text, first) {
		return
	}
	need := fmt.Sprint(w.Ranks)
	if w.Least {
		need = "at least " + need
	}
	s.rule = rules.Named("too-few-ranks")
	s.confidence = s.rule.Confidence
	s.names = map[string]string{"need": need, "ranks": fmt.Sprint(w.Ranks), "said": logtext.Short(first, 200)}
}
