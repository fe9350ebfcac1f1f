package htmlreport

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestContrast: text, and words in bars, have the contrast that WCAG 2.2 requires (4.5). Marks and lines have a
// contrast of 3.
func TestContrast(t *testing.T) {
	_, light, _ := strings.Cut(source, ":root {")
	light, rest, _ := strings.Cut(light, "}")
	_, dark, _ := strings.Cut(rest, ":root {")
	dark, _, _ = strings.Cut(dark, "}")
	for mode, css := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
			colours[m[1]] = m[2]
		}
		check := func(front, back string, least float64) {
			t.Helper()
			a, b := colours[front], colours[back]
			if a == "" || b == "" {
				t.Fatalf("%s: there is no colour %s or %s", mode, front, back)
			}
			x, y := luminance(t, a), luminance(t, b)
			if have := (max(x, y) + 0.05) / (min(x, y) + 0.05); have < least {
				t.Errorf("%s: %s on %s has a contrast of %.1f, want %g", mode, front, back, have, least)
			}
		}
		for _, back := range []string{"paper", "card"} {
			for _, front := range []string{"ink", "dim", "good", "bad", "mild", "live"} {
				check(front, back, 4.5)
			}
		}
		for _, bar := range []string{"good", "bad", "mild", "live", "held"} {
			check("on", bar, 4.5)
		}
		for _, part := range []string{"p-preflight", "p-waiting", "p-launching", "p-running", "p-backoff", "curve", "old"} {
			check(part, "card", 3)
		}
		for lane := range lanes {
			check("l"+strconv.Itoa(int(lane)), "card", 3)
		}
	}
}

// luminance returns the relative luminance of WCAG.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		v := float64(n) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}
