package preflight

import "testing"

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
