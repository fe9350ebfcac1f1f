package wire

// Bytes converts texts to the form that they have in a message. A message has them as bytes, because they need not be
// UTF-8.
func Bytes(texts []string) [][]byte {
	out := make([][]byte, len(texts))
	for i, text := range texts {
		out[i] = []byte(text)
	}
	return out
}

// Strings converts texts of a message back to strings.
func Strings(raw [][]byte) []string {
	out := make([]string, len(raw))
	for i, text := range raw {
		out[i] = string(text)
	}
	return out
}
