package job_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

func TestParseDuration(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{"0", 0},
		{"0s", 0},
		{"90s", 90 * time.Second},
		{"1h30m", 90 * time.Minute},
		{"1.5h", 90 * time.Minute},
		{"250ms", 250 * time.Millisecond},
		{"2562047h47m16.854775807s", math.MaxInt64},
	} {
		got, err := job.ParseDuration(c.text)
		if err != nil || got != job.Duration(c.want) {
			t.Errorf("%q: got %s, %v; want %s", c.text, got, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"":            "is not a duration with a unit",
		"30":          "is not a duration with a unit",
		"5 m":         "is not a duration with a unit",
		"1d":          "is not a duration with a unit",
		"soon":        "is not a duration with a unit",
		"9999999999h": "is not a duration with a unit",
		"-5s":         "is negative",
	} {
		got, err := job.ParseDuration(text)
		if err == nil || got != 0 || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("%q: got %s, %v; want an error that quotes it and says that it %s", text, got, err, want)
		}
	}
}

func TestDurationIsTextInJSON(t *testing.T) {
	type holder struct {
		At    job.Duration            `json:"at"`
		Unset job.Duration            `json:"unset,omitempty"`
		Keys  map[job.Duration]string `json:"keys"`
	}
	in := holder{At: job.Duration(90 * time.Second), Keys: map[job.Duration]string{job.Duration(time.Millisecond): "x"}}
	data, err := json.Marshal(in)
	if want := `{"at":"1m30s","keys":{"1ms":"x"}}`; err != nil || string(data) != want {
		t.Fatalf("got %s, %v; want %s", data, err, want)
	}
	thereAndBack(t, in)
	for _, text := range []string{`{"at":"-1s"}`, `{"at":"fast"}`, `{"at":5}`} {
		var h holder
		if err := json.Unmarshal([]byte(text), &h); err == nil {
			t.Errorf("%s was read as %s, want an error", text, h.At)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"", "0", "5s", "-5s", "1h30m", "1.5h", "+3ms", "1us", "1µs", ".5s", "9223372036854775807ns", "9223372036854775808ns", "30", "1e3s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := job.ParseDuration(text)
		if err != nil {
			if d != 0 {
				t.Fatalf("%q gave %s beside the error %v", text, d, err)
			}
			return
		}
		if d < 0 {
			t.Fatalf("%q gave %s", text, d)
		}
		written, err := d.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back job.Duration
		if err := back.UnmarshalText(written); err != nil || back != d {
			t.Fatalf("%q gave %s, which is read back from %q as %s, %v", text, d, written, back, err)
		}
	})
}
