package outlook

// Reader finds the marks of the lines of a log. A program prints most lines again and again, with other numbers. So a
// Reader remembers the marks of each form of line. To look up a form takes a fiftieth of the time that the function
// Of takes. The zero Reader is ready to use.
type Reader struct {
	marks map[string]Mark // by form
	form  []byte
}

const (
	maxForms  = 4096
	maxDigits = 5 // digits of a number in a form; the patterns of Of do not tell longer numbers apart
)

// Of returns the mark of a line, as the function Of does.
func (r *Reader) Of(t string) Mark {
	// The marks of such a line depend on more than its form.
	if len(t) >= longLine || mayCount(t) && counted.MatchString(t) {
		return Of(t)
	}
	r.form = appendForm(r.form[:0], t)
	m, ok := r.marks[string(r.form)]
	if !ok {
		m = Of(t)
		if r.marks == nil {
			r.marks = map[string]Mark{}
		}
		if len(r.marks) < maxForms {
			r.marks[string(r.form)] = m
		}
	}
	return m
}

// mayCount reports whether a line may have a number on both sides of a slash or of "of".
func mayCount(t string) bool {
	for i := 1; i < len(t)-1; i++ {
		from, to := i-1, i+1
		if t[i] == 'o' && t[i+1] == 'f' {
			if t[from] == ' ' && i+3 < len(t) && t[i+2] == ' ' && isDigit(t[i+3]) {
				return true
			}
			to++
		} else if t[i] != '/' {
			continue
		}
		if t[from] == ' ' && from > 0 {
			from--
		}
		if to < len(t)-1 && t[to] == ' ' {
			to++
		}
		if to < len(t) && isDigit(t[from]) && isDigit(t[to]) {
			return true
		}
	}
	return false
}

// appendForm appends the form of a line to form: the line with each of its numbers replaced. The replacement only shows
// how many digits the number has, up to maxDigits, and whether it is zero or begins with a zero.
func appendForm(form []byte, t string) []byte {
	for i := 0; i < len(t); {
		if !isDigit(t[i]) {
			form = append(form, t[i])
			i++
			continue
		}
		begin, zero := i, true
		for ; i < len(t) && isDigit(t[i]); i++ {
			zero = zero && t[i] == '0'
		}
		for j := range min(i-begin, maxDigits) {
			if zero || j == 0 && t[begin] == '0' {
				form = append(form, '0')
			} else {
				form = append(form, '1')
			}
		}
	}
	return form
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
