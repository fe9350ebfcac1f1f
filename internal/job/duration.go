package job

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that is written as text ("5s", "2m30s").
type Duration time.Duration

// String formats d like time.Duration.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText encodes d as text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText accepts what ParseDuration accepts.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	*d = v
	return err
}

// ParseDuration reads a duration of at least 0 with its unit, as in "90s".
func ParseDuration(text string) (Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration with a unit, as in 30s, 5m or 1h30m", text)
	}
	if d < 0 {
		return 0, fmt.Errorf("duration %q is negative", text)
	}
	return Duration(d), nil
}
