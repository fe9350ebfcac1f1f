package agent

import (
	"testing"
)

func TestAvailable(t *testing.T) {
	const meminfo = "MemTotal:       24684084 kB\nMemFree:         1000000 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n"
	if have := available(meminfo); have != 2<<20 {
		t.Errorf("available is %d", have)
	}
	if have := available("MemTotal: x"); have != 0 {
		t.Errorf("available is %d where nothing tells", have)
	}
}
