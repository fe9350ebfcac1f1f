package inventory

import (
	"os"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// blocks returns the code blocks of docs/inventory.md by the heading above them.
func blocks(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/inventory.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	heading, inside := "", false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
		case inside:
			out[heading] += line
		case strings.HasPrefix(line, "#"):
			heading = strings.Trim(line, "# \n")
		}
	}
	return out
}

// TestDocumentedForms checks that every example in the documentation is read as the documentation says.
func TestDocumentedForms(t *testing.T) {
	doc := blocks(t)
	for line := range strings.Lines(doc["--hosts"]) {
		value := strings.Trim(strings.TrimPrefix(strings.TrimSpace(line), "--hosts "), "'")
		if _, err := Hosts(value); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
	for heading, kind := range map[string]Kind{"Open MPI": OpenMPI, "MPICH": MPICH, "Plain, and a line for each slot": Plain} {
		list, err := Hostfile("hosts.txt", []byte(doc[heading]))
		if err != nil || list.Kind != kind {
			t.Errorf("%s: %v, %v", heading, list.Kind, err)
		}
	}
	sites, err := Topology("topology.conf", []byte(doc["Slurm's topology.conf"]))
	if err != nil || len(sites) != 8 || sites["h5"] != (Site{"s2", "r1"}) {
		t.Errorf("sites %v, %v", sites, err)
	}
	list, err := YAML("lab.yaml", []byte(doc["The YAML inventory"]), filesOf(map[string]string{"dgx-a100.txt": "x,NV12 NV12,x"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Hosts) != 3 {
		t.Fatalf("hosts %+v", list.Hosts)
	}
	h2, h3 := list.Hosts[1], list.Hosts[2]
	if h2.Name != "h02" || h2.Address != "10.0.0.2" || h2.Slots != 8 || !h2.Hard || h2.Rack != "r1" || h2.Switch != "s1" || len(h2.Devices) != 2 || h2.Links[0][1] != "NV12" {
		t.Errorf("h02 is %+v", h2)
	}
	if h3.Slots != 0 || h3.Hard || len(h3.Devices) != 8 || h3.Links != nil || h3.Devices[3].UUID != "GPU3" || h3.Devices[3].Busy == "" || h3.Devices[1] != (job.Device{UUID: "GPU1", Index: 1}) {
		t.Errorf("h03 is %+v", h3)
	}
	for _, key := range hostKeys {
		if !strings.Contains(doc["The YAML inventory"], key+":") {
			t.Errorf("the example does not show %q", key)
		}
	}
}
