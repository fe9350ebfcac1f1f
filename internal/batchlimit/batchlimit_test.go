package batchlimit

import (
	"errors"
	"testing"
	"time"
)

func TestEnd(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	start := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		env  map[string]string
		flux string
		want time.Time
	}{
		"no job":                  {},
		"OAR":                     {env: map[string]string{"OAR_JOB_WALLTIME_SECONDS": "7200", "OAR_NODEFILE": "/nodes"}, want: now.Add(time.Hour)},
		"OAR without its file":    {env: map[string]string{"OAR_JOB_WALLTIME_SECONDS": "7200", "OAR_NODEFILE": "/absent"}},
		"Torque":                  {env: map[string]string{"PBS_WALLTIME": "3660", "PBS_NODEFILE": "/nodes"}, want: now.Add(time.Minute)},
		"Torque, not in seconds":  {env: map[string]string{"PBS_WALLTIME": "1:00:00", "PBS_NODEFILE": "/nodes"}},
		"Torque, negative":        {env: map[string]string{"PBS_WALLTIME": "-1", "PBS_NODEFILE": "/nodes"}},
		"Flux batch":              {env: map[string]string{"FLUX_URI": "local:///x"}, flux: "90\n", want: now.Add(90 * time.Second)},
		"Flux task":               {env: map[string]string{"FLUX_JOB_ID": "f1"}, flux: "0\n", want: now},
		"Flux without a limit":    {env: map[string]string{"FLUX_URI": "local:///x"}, flux: "4294967295\n"},
		"Flux that does not work": {env: map[string]string{"FLUX_URI": "local:///x"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := System{
				Lookup: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok },
				Changed: func(path string) (time.Time, error) {
					if path != "/nodes" {
						return time.Time{}, errors.New("no such file")
					}
					return start, nil
				},
				Run: func(name string, args ...string) ([]byte, error) {
					if c.flux == "" {
						return nil, errors.New("no flux")
					}
					return []byte(c.flux), nil
				},
				Now: func() time.Time { return now },
			}
			end, ok := s.End()
			if ok == c.want.IsZero() || ok && !end.Equal(c.want) {
				t.Errorf("got %v, %v; want %v", end, ok, c.want)
			}
		})
	}
}
