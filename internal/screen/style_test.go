package screen

import "testing"

func TestStyle(t *testing.T) {
	for _, test := range []struct {
		name   string
		params []string // the parameters of several sequences, one after the other
		want   string   // the parameters of the sequence that sets the style
	}{
		{"none", nil, ""},
		{"reset", []string{"1", ""}, ""},
		{"reset in the midst", []string{"1;0;31"}, ";31"},
		{"reset by a missing number", []string{"1;;31"}, ";31"},
		{"all attributes", []string{"9;7;4;3;2;1;53"}, ";1;2;3;4;7;9;53"},
		{"doubly underlined", []string{"21"}, ";4"},
		{"taken back", []string{"1;2;3;4;7;9;53", "22;23;24;27;29;55"}, ""},
		{"underlines", []string{"4:3", "31"}, ";4;31"},
		{"no underline", []string{"4", "4:0"}, ""},
		{"blinking, concealed", []string{"5;6;8;10;25;28;999999999999999999999"}, ""},
		{"colours", []string{"31;42"}, ";31;42"},
		{"bright colours", []string{"97;100"}, ";97;100"},
		{"colours taken back", []string{"31;42", "39", "49"}, ""},
		{"last colour counts", []string{"31", "32"}, ";32"},
		{"indexed", []string{"38;5;208;48;5;0"}, ";38;5;208;48;5;0"},
		{"indexed, then bold", []string{"38;5;8;1"}, ";1;38;5;8"},
		{"direct", []string{"38;2;1;2;3;48;2;255;0;9"}, ";38;2;1;2;3;48;2;255;0;9"},
		{"with colons", []string{"38:5:208;48:2:1:2:3"}, ";38;5;208;48;2;1;2;3"},
		{"with a colour space", []string{"38:2::1:2:3"}, ";38;2;1;2;3"},
		{"with a tolerance", []string{"38:2::1:2:3::4;1"}, ";1;38;2;1;2;3"},
		{"underline's colour", []string{"58;5;1;31", "58:2::1:2:3", "58;2;1;2;3"}, ";31"},
		{"too large", []string{"38;5;256;1", "48:2:1:2:300"}, ";1"},
		{"cut short", []string{"38", "38;5", "38;2;1;2", "38:5", "38:", "48:2:1"}, ""},
		{"no such kind", []string{"38;3;31"}, ";3;31"},
		{"as many as there can be", []string{"1;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;31", ";;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s style
			for _, p := range test.params {
				s.apply([]byte(p))
			}
			if got, want := string(s.append(nil)), "\x1b[0"+test.want+"m"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
