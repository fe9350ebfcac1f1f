package wire

// Strings returns texts that travelled as bytes, because they need not be UTF-8.
func Strings(raw [][]byte) []string {
	out := make([]string, len(raw))
	for i, text := range raw {
		out[i] = string(text)
	}
	return out
}
