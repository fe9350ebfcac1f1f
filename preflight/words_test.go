package preflight

import (
	"testing"
	"time"
)

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		list []string
		want string
	}{
		{nil, ""},
		{[]string{"a"}, "a"},
		{[]string{"a", "b"}, "a and b"},
		{[]string{"a", "b", "c"}, "a, b and c"},
		{[]string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, "1, 2, 3, 4, 5, 6, 7, 8 and 9"},
		{[]string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}, "1, 2, 3, 4, 5, 6, 7, 8 and 2 more"},
	} {
		if have := names(tt.list); have != tt.want {
			t.Errorf("names(%q) = %q, want %q", tt.list, have, tt.want)
		}
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1024: "1.0 KiB", 10 << 10: "10 KiB",
		1 << 20: "1.0 MiB", 1536 << 20: "1.5 GiB", 5 << 40: "5.0 TiB", 3 << 50: "3.0 PiB", 1<<63 - 1: "8192 PiB",
	} {
		if have := size(bytes); have != want {
			t.Errorf("size(%d) = %q, want %q", bytes, have, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0 s", 1300 * time.Millisecond: "1.3 s", 99 * time.Second: "99.0 s", 100 * time.Second: "1 min",
		12*time.Minute + 59*time.Second: "12 min", 3*time.Hour + time.Minute: "3 h",
	} {
		if have := span(d); have != want {
			t.Errorf("span(%v) = %q, want %q", d, have, want)
		}
	}
}
