package pmi

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/launcher/pmi1"
)

// TestLinks checks which connections to peers are still open, and which peers ask for something.
func TestLinks(t *testing.T) {
	at := func(state tcpState, unread uint64) connection {
		return connection{state: state, local: "here", remote: "there", unread: unread}
	}
	open := func(unread uint64) connection { return at(tcpEstablished, unread) }
	listens, closing, reset := at(tcpListens, 0), at(tcpCloseWait, 1), at(tcpClosed, 0)
	toPMI := func(unread uint64) connection {
		return connection{state: tcpEstablished, remote: "pmi", unread: unread}
	}
	idle, asking := pmi1.Link{Local: "here", Remote: "there"}, pmi1.Link{Local: "here", Remote: "there", Asks: true}
	for _, test := range []struct {
		name string
		all  []connection
		want []pmi1.Link
	}{
		{"no connections", nil, nil},
		{"none but what listens", []connection{listens}, nil},
		{"one asks", []connection{listens, open(25)}, []pmi1.Link{asking}},
		{"all ask", []connection{open(25), open(25)}, []pmi1.Link{asking, asking}},
		{"one asks, others have closed", []connection{closing, open(25), reset}, []pmi1.Link{asking}},
		{"what was asked of one that has closed", []connection{at(tcpCloseWait, 25)}, nil},
		{"one asks, one has said that it closes", []connection{open(9), open(25)}, []pmi1.Link{asking}},
		{"one asks, one may still speak", []connection{open(25), open(0)}, []pmi1.Link{asking, idle}},
		{"one asks, one is being connected", []connection{open(25), at(2, 0)}, []pmi1.Link{asking, idle}},
		{"nobody asks", []connection{closing, reset}, nil},
		{"connections are being made", []connection{open(34), open(9)}, nil},
		{"one asks, besides PMI's", []connection{open(25), toPMI(0)}, []pmi1.Link{asking}},
		{"only PMI's", []connection{toPMI(25)}, nil},
		{"listeners' queues are no bytes", []connection{at(tcpListens, 25)}, nil},
	} {
		if got := links(test.all, "pmi"); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

const tcpTable = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
	"   0: 0200A8C0:ADF8 00000000:0000 0A 00000000:00000001 00:00000000 00000000     0        0 1001 1 0000000000000000 100 0 0 10 0\n" +
	"   1: 0100007F:ADF8 0100007F:8539 01 00000000:00000019 02:0009B0A2 00000000     0        0 1002 2 0000000000000000 20 4 30 10 -1\n" +
	"   2: 0100007F:ADF9 0100007F:8539 08 00000000:00000001 00:00000000 00000000     0        0 1003 1 0000000000000000 20 4 30 10 -1\n" +
	"   3: 0000000000000000FFFF00000100007F:ADF8 0000000000000000FFFF00000100007F:8539 01 00000000:00000009 00:00000000 00000000     0        0 1004 1\n"

func TestParseTCP(t *testing.T) {
	want := []connection{
		{tcpListens, "0200A8C0:ADF8", "00000000:0000", 1, "1001"}, {tcpEstablished, "0100007F:ADF8", "0100007F:8539", 25, "1002"},
		{tcpCloseWait, "0100007F:ADF9", "0100007F:8539", 1, "1003"},
		{tcpEstablished, "0000000000000000FFFF00000100007F:ADF8", "0000000000000000FFFF00000100007F:8539", 9, "1004"},
	}
	if got := parseTCP([]byte(tcpTable)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzParseTCP(f *testing.F) {
	f.Add([]byte(tcpTable))
	f.Add([]byte("0: a b 1 0:zz 0 0 0 0 5\n1: a b 100 0:1 0 0 0 0 5\n2: a b 01 :ffffffffffffffff 0 0 0 0 5"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range parseTCP(data) {
			if c.inode == "" || c.state > 0xff {
				t.Errorf("%q: %v", data, c)
			}
		}
	})
}

// TestOwnConnections checks that the open connections of a process, and their unread data, are found.
func TestOwnConnections(t *testing.T) {
	client, server := agenttest.Connected(t)
	if _, err := client.Write(make([]byte, flushRequest)); err != nil {
		t.Fatal(err)
	}
	raw, err := server.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var name string
	err = raw.Read(func(fd uintptr) bool { // the data arrives, but stays unread
		name, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		n, _, _ := unix.Recvfrom(int(fd), make([]byte, 2*flushRequest), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return n == flushRequest
	})
	if err != nil {
		t.Fatal(err)
	}
	inode := strings.Trim(name, "socket:[]")
	want := connection{tcpEstablished, tableAddress(client.RemoteAddr().String()), tableAddress(client.LocalAddr().String()), flushRequest, inode}
	if all := ownConnections(os.Getpid()); !slices.Contains(all, want) {
		t.Errorf("%v is not among %v", want, all)
	}
	if got := tableAddress(""); got != "" {
		t.Errorf("no address is %q", got)
	}
	if all := ownConnections(os.Getppid()); slices.Contains(all, want) {
		t.Errorf("%v is among another process's", want)
	}
}
