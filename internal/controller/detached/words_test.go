package detached

import (
	"slices"
	"testing"
)

func TestShownWords(t *testing.T) {
	for _, c := range []struct{ words, want []string }{
		{[]string{"gangrun", "run", "--detach", "-e", "A=b=c", "-n", "2", "job.yaml"}, []string{"gangrun", "run", "--detach", "-e", "A=***", "-n", "2", "job.yaml"}},
		{[]string{"gangrun", "run", "-e=A=b", "--env=B=c", "-env", "C=d", "--e", "D="}, []string{"gangrun", "run", "-e=A=***", "--env=B=***", "-env", "C=***", "--e", "D=***"}},
		{[]string{"gangrun", "run", "-e", "A", "--env=B", "--", "-e", "A=b"}, []string{"gangrun", "run", "-e", "A", "--env=B", "--", "-e", "A=b"}},
		{[]string{"gangrun", "run", "-e", "--", "A=b"}, []string{"gangrun", "run", "-e", "--", "A=b"}},
		{[]string{"gangrun", "run", "--exit-code=verdict", "-e"}, []string{"gangrun", "run", "--exit-code=verdict", "-e"}},
	} {
		if got := shownWords(c.words); !slices.Equal(got, c.want) {
			t.Errorf("%q is shown as %q, want %q", c.words, got, c.want)
		}
	}
}
