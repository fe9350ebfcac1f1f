package diagnose

// Cascade reports whether a line of output reads like the echo of another
// rank's failure: a peer that closed its connection, a collective that timed
// out. Whoever sees such a line first may give the culprit a moment to show.
func Cascade(text string) bool {
	t := plainText(text)
	g := &sign{text: t}
	if errorLine(t) {
		e := headless([]string{t}, 0)
		g = e.sign()
	}
	r := match(g)
	return r != nil && r.Cascade
}
