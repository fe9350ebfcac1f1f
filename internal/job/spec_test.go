package job_test

import (
	"reflect"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestRedacted(t *testing.T) {
	spec := func() job.Spec {
		s := job.Default()
		s.Env = map[string]string{"TOKEN": "hush", "EMPTY": "", "PLAIN": "seen"}
		s.Trial.Env = map[string]string{"TOKEN": "hush too", "OTHER": "seen"}
		s.Secret = []string{"TOKEN", "EMPTY", "ABSENT"}
		return s
	}
	s := spec()
	got := s.Redacted()
	want := spec()
	want.Env = map[string]string{"TOKEN": job.Hidden, "EMPTY": job.Hidden, "PLAIN": "seen"}
	want.Trial.Env = map[string]string{"TOKEN": job.Hidden, "OTHER": "seen"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !reflect.DeepEqual(s, spec()) {
		t.Errorf("the original has changed to %+v", s)
	}
	if none := (job.Spec{Secret: []string{"TOKEN"}}).Redacted(); none.Env != nil || none.Trial.Env != nil {
		t.Errorf("an environment came from nowhere: %+v", none)
	}
}
