package curve

import (
	"math"
	"strconv"
)

// maxDigits limits the digits before the decimal point. The largest finite float64 has 309 digits.
const maxDigits = 309

// number reads an unsigned decimal number at i. The number may have groups of thousands, a fraction and an
// exponent. number also returns the index after it.
func number(t []byte, i int) (float64, int, bool) {
	start := i
	for i < len(t) && isDigit(t[i]) {
		i++
	}
	if i == start || i-start > maxDigits {
		return 0, i, false
	}
	if i-start <= 3 && grouped(t, i) {
		value := float64(0)
		for j := start; ; j++ {
			switch {
			case j < len(t) && isDigit(t[j]):
				value = value*10 + float64(t[j]-'0')
			case j < len(t) && t[j] == ',' && grouped(t, j):
			default:
				return value, j, true
			}
		}
	}
	if i+1 < len(t) && t[i] == '.' && isDigit(t[i+1]) {
		for i++; i < len(t) && isDigit(t[i]); i++ {
		}
	}
	if i+1 < len(t) && t[i]|0x20 == 'e' {
		j := i + 1
		if t[j] == '+' || t[j] == '-' {
			j++
		}
		if j < len(t) && isDigit(t[j]) {
			for i = j; i < len(t) && isDigit(t[i]); i++ {
			}
		}
	}
	value, err := strconv.ParseFloat(string(t[start:i]), 64)
	return value, i, err == nil
}

// decimal reads an unsigned number with a decimal comma at i, as in "2,2932" and "0,385". It also returns the index after
// it. ok is false if the comma may separate thousands or two numbers.
func decimal(t []byte, i int) (value float64, end int, ok bool) {
	start := i
	for i < len(t) && isDigit(t[i]) {
		i++
	}
	comma := i
	if i == start || i-start > maxDigits || i+1 >= len(t) || t[i] != ',' || !isDigit(t[i+1]) {
		return 0, i, false
	}
	for i++; i < len(t) && isDigit(t[i]); i++ {
	}
	if i-comma-1 == 3 && t[start] != '0' {
		return 0, i, false
	}
	if i < len(t) && (t[i] == '.' && i+1 < len(t) && isDigit(t[i+1]) || t[i] == ',' && i+1 < len(t) && isDigit(t[i+1])) {
		return 0, i, false
	}
	text := append(append(append([]byte(nil), t[start:comma]...), '.'), t[comma+1:i]...)
	if _, last, more := number(append(text, t[i:min(len(t), i+6)]...), 0); more && last > len(text) { // an exponent
		text, i = append(text, t[i:i+last-len(text)]...), i+last-len(text)
	}
	value, err := strconv.ParseFloat(string(text), 64)
	return value, i, err == nil
}

// notFinite reads the word "nan", "inf" or "infinity" at i. It also returns the index after the word.
func notFinite(t []byte, i int) (float64, int, bool) {
	end := i
	for end < len(t) && (isLetter(t[end]) || isDigit(t[end])) {
		end++
	}
	switch string(t[i:end]) {
	case "nan":
		return math.NaN(), end, true
	case "inf", "infinity":
		return math.Inf(1), end, true
	}
	return 0, i, false
}

// grouped reports whether a group of exactly three digits begins at i, as in "1,234", and a blank, a slash or
// the end of t follows the last group.
func grouped(t []byte, i int) bool {
	for i+3 < len(t) && t[i] == ',' && isDigit(t[i+1]) && isDigit(t[i+2]) && isDigit(t[i+3]) {
		i += 4
		if i == len(t) || t[i] == ' ' || t[i] == '/' {
			return true
		}
	}
	return false
}
