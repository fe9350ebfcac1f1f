package text

import (
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1024: "1.0 KiB", 10 << 10: "10 KiB",
		1 << 20: "1.0 MiB", 1536 << 20: "1.5 GiB", 5 << 40: "5.0 TiB", 3 << 50: "3.0 PiB", 1<<63 - 1: "8192 PiB",
	} {
		if have := Bytes(bytes); have != want {
			t.Errorf("Bytes(%d) = %q, want %q", bytes, have, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0 s", 1300 * time.Millisecond: "1.3 s", 99 * time.Second: "99.0 s", 100 * time.Second: "1 min",
		12*time.Minute + 59*time.Second: "12 min", 3*time.Hour + time.Minute: "3 h",
	} {
		if have := Span(d); have != want {
			t.Errorf("Span(%v) = %q, want %q", d, have, want)
		}
	}
}

func TestRate(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0.0 B/s", 12: "12 B/s", 1200: "1.2 kB/s", 12.5e6: "12 MB/s", 3.04e9: "3.0 GB/s", 500e12: "500 TB/s", 5e18: "5000 PB/s",
	} {
		if have := Rate(value, "B/s"); have != want {
			t.Errorf("Rate(%g) = %q, want %q", value, have, want)
		}
	}
}
