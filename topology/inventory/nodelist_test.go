package inventory

import (
	"slices"
	"strings"
	"testing"
)

// TestExpand compares expand with libslurm 22.05.
func TestExpand(t *testing.T) {
	for text, want := range map[string]string{
		"h1":                     "h1",
		"h[1-3,7]":               "h1 h2 h3 h7",
		"rack[01-02]n[001-003]":  "rack01n001 rack01n002 rack01n003 rack02n001 rack02n002 rack02n003",
		"h[001-10]":              "h001 h002 h003 h004 h005 h006 h007 h008 h009 h010",
		"h[8-10]":                "h8 h9 h10",
		"h[08-10]":               "h08 h09 h10",
		"h[09-11,3]":             "h09 h10 h11 h3",
		"h[1-2][3-4]":            "h13 h14 h23 h24",
		"a,b[1-2],c":             "a b1 b2 c",
		"h[1,1]":                 "h1 h1",
		"h[0-0]":                 "h0",
		"h[1-2].lab, x-[1]-y":    "h1.lab h2.lab x-1-y",
		"h[999999999999999999]":  "h999999999999999999",
		"10.0.[0-1].[254-255]":   "10.0.0.254 10.0.0.255 10.0.1.254 10.0.1.255",
		"tux[0-1,12,18-20],gpu7": "tux0 tux1 tux12 tux18 tux19 tux20 gpu7",
	} {
		got, bad := expand(text, 100)
		if bad != nil || strings.Join(got, " ") != want {
			t.Errorf("%q gives %q, %v", text, got, bad)
		}
	}
	if all, bad := expand("n[1-50000],m[1-50000]", MaxHosts); bad != nil || len(all) != MaxHosts || all[MaxHosts-1] != "m50000" {
		t.Errorf("%d names, %v", len(all), bad)
	}
}

func TestExpandRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  `the node list "" has an empty name`,
		"a,,b":                              `the node list "a,,b" has an empty name`,
		"h[1-3":                             `"h[1-3" has a [ without its ]`,
		"h[1-[2]]":                          `"h[1-[2]]" has a [ without its ]`,
		"h1]":                               `"h1]" has a ] without a [`,
		"h[]":                               `"h[]" has "" in brackets`,
		"h[1,]":                             `"h[1,]" has "" in brackets`,
		"h[ 1-2 ]":                          `"h[ 1-2 ]" has " 1-2 " in brackets`,
		"h[1-2-3]":                          `"h[1-2-3]" has "1-2-3" in brackets`,
		"h[a-f]":                            `"h[a-f]" has "a-f" in brackets`,
		"h[-1]":                             `"h[-1]" has "-1" in brackets`,
		"h[3-1]":                            `the range "3-1" of "h[3-1]" runs backwards`,
		"h[1-010]":                          `the range "1-010" of "h[1-010]" does not show how wide its numbers are`,
		"h[1000000000000000000]":            `"h[1000000000000000000]" has "1000000000000000000" in brackets`,
		"h[1-101]":                          `the node list "h[1-101]" names too many`,
		"h[1-999999999999999999]":           `the node list "h[1-999999999999999999]" names too many`,
		"h[1-50],i[1-51]":                   `the node list "h[1-50],i[1-51]" names too many`,
		strings.Repeat("[0-99999]", 40):     `the node list "` + strings.Repeat("[0-99999]", 40)[:60] + `"... names too many`,
		"h[1-2]" + strings.Repeat("x", 252): `"h[1-2]` + strings.Repeat("x", 54) + `"... is too long for a host's name`,
	} {
		got, bad := expand(text, 100)
		if bad == nil || bad.text != want || bad.hint == "" || got != nil {
			t.Errorf("%q gives %q, %+v; want %s", text, got, bad, want)
		}
	}
}

func TestRepeats(t *testing.T) {
	for text, want := range map[string][]int{
		"2(x4),1": {2, 2, 2, 2, 1}, "1,1,1,1,3": {1, 1, 1, 1, 3}, "8(x5)": {8, 8, 8, 8, 8}, "1(x1),2(x3),1": {1, 2, 2, 2, 1},
	} {
		if got, bad := repeats(text, 5); bad != nil || !slices.Equal(got, want) {
			t.Errorf("%q gives %v, %v", text, got, bad)
		}
	}
	for text, want := range map[string]string{
		"2(x4)": `"2(x4)" stands for 4 hosts, not for 5`, "2(x6)": `"2(x6)" stands for more than 5 hosts`, "2(x4),1,1": `"2(x4),1,1" stands for more than 5 hosts`,
		"": `the number for a host is ""`, "2(x": `"2(x" has no end`, "2(x5": `"2(x5" has no end`, "2(x0)": `the count of hosts in "2(x0)" is "0"`,
		"2(x99999999999999999999)": `the count of hosts in "2(x99999999999999999999)" is "99999999999999999999"`, "0(x5)": `the number for a host is "0"`, "a(x5)": `the number for a host is "a"`,
	} {
		if got, bad := repeats(text, 5); bad == nil || bad.text != want || bad.hint == "" || got != nil {
			t.Errorf("%q gives %v, %+v", text, got, bad)
		}
	}
}
