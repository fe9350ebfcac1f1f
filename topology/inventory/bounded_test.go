package inventory

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// bounded checks what must be true of every answer of a parser: an error has its source and an existing line,
// and a list is within its limits.
func bounded(t *testing.T, source string, text string, list List, err error) {
	t.Helper()
	if err != nil {
		var errs Errors
		if !errors.As(err, &errs) || len(errs) == 0 || len(errs) > maxErrors+2 {
			t.Fatalf("error %#v, want some Errors", err)
		}
		lines := strings.Count(text, "\n") + 1
		for _, e := range errs {
			if e.Text == "" || e.Source == "" || e.Line < 0 || e.Line > lines || strings.Contains(e.Error()+e.Hint(), "\n") {
				t.Errorf("error %+v has no place in %d lines", e, lines)
			}
			if e.Hint() == "" && !strings.Contains(e.Text, "did you mean") && !strings.HasPrefix(e.Text, "reading stopped") {
				t.Errorf("error %q does not tell what to write", e)
			}
			if source != "" && e.Source != source {
				t.Errorf("error %q is of another source than %q", e, source)
			}
		}
		if !reflect.DeepEqual(list, List{}) {
			t.Errorf("a list comes with the error %v", err)
		}
		return
	}
	if len(list.Hosts) == 0 || len(list.Hosts) > MaxHosts {
		t.Fatalf("%d hosts", len(list.Hosts))
	}
	seen := map[string]bool{}
	for _, h := range list.Hosts {
		if seen[h.Name] {
			t.Errorf("host %q stands twice", h.Name)
		}
		seen[h.Name] = true
		if again, bad := hostName(bracketed(h.Name)); bad != nil || again != h.Name {
			t.Errorf("name %q is none", h.Name)
		}
		if again, bad := hostName(bracketed(h.Address)); bad != nil || again != h.Address {
			t.Errorf("address %q is none", h.Address)
		}
		if h.Slots < 0 || h.Slots > MaxSlots || h.Hard && h.Slots == 0 || !h.Hard && h.Slots != 0 && list.Kind != Slurm && list.Kind != Flux {
			t.Errorf("host %+v has wrong slots", h)
		}
		if len(h.Devices) > MaxGPUs || h.Links != nil && len(h.Links) != len(h.Devices) {
			t.Errorf("host %q has wrong devices", h.Name)
		}
	}
	for host, user := range list.Users {
		if !seen[host] || userName(user) != nil {
			t.Errorf("user %q at %q", user, host)
		}
	}
}

// bracketed returns a name in the form in which lists have it.
func bracketed(name string) string {
	if strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	return name
}

// write writes a list in one of the forms that Hostfile and Hosts read.
func write(list List, kind Kind) string {
	var b strings.Builder
	for i, h := range list.Hosts {
		user := list.Users[h.Name]
		if user != "" && kind != MPICH {
			user += "@"
		}
		switch kind {
		case Flag:
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(user + bracketed(h.Name))
			if h.Hard {
				fmt.Fprintf(&b, ":%d", h.Slots)
			}
		case OpenMPI:
			b.WriteString(user + bracketed(h.Name))
			if h.Hard {
				fmt.Fprintf(&b, " slots=%d", h.Slots)
			}
			b.WriteByte('\n')
		case MPICH:
			b.WriteString(bracketed(h.Name))
			if h.Hard {
				fmt.Fprintf(&b, ":%d", h.Slots)
			}
			if user != "" {
				b.WriteString(" user=" + user)
			}
			b.WriteByte('\n')
		case Plain:
			b.WriteString(bracketed(h.Name) + "\n")
		case Nodefile:
			b.WriteString(strings.Repeat(bracketed(h.Name)+"\n", max(h.Slots, 1)))
		}
	}
	return b.String()
}

// same checks that two lists are equal.
func same(t *testing.T, got, want List, from string) {
	t.Helper()
	if !reflect.DeepEqual(got.Hosts, want.Hosts) || !reflect.DeepEqual(got.Users, want.Users) {
		t.Errorf("got  %+v %v\nwant %+v %v\nfrom %q", got.Hosts, got.Users, want.Hosts, want.Users, from)
	}
}

func trimmed(names []string) []string {
	out := slices.Clone(names)
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}
