package lease

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// plant writes text to a file of dir that belongs to uid, and locks the file during the test.
func plant(t *testing.T, dir, name string, uid int, text string) {
	t.Helper()
	path := dir + "/" + name
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, 0o666)
	if uid != os.Geteuid() {
		if err := os.Chown(path, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// rawTicket is a record of a ticket, valid or not.
func rawTicket(uid, count int, devices []string) string {
	body := fmt.Sprintf(`{"owner":{"run":"evil","uid":%d},"ticket":{"run":"evil","since":"2020-01-01T00:00:00Z","devices":["%s"],"count":%d,"least":%d}}`,
		uid, strings.Join(devices, `","`), count, count)
	return fmt.Sprintf("%s%d %08x\n%s\n", magic, len(body), crc32.Checksum([]byte(body), castagnoli), body)
}

// TestTicketsOfStrangersAreBounded: the tickets of another user must neither stop nor delay anybody.
func TestTicketsOfStrangersAreBounded(t *testing.T) {
	uid := os.Geteuid()
	for name, c := range map[string]struct {
		file, text, want string
		root             bool
	}{
		"110,000 GPUs":      {file: "7", text: rawTicket(uid, 110000, gpus(110000)), want: "holds no ticket"},
		"257 GPUs":          {file: "7", text: rawTicket(uid, 257, gpus(257)), want: "names 257 GPUs"},
		"a long name":       {file: "7", text: rawTicket(uid, 1, []string{strings.Repeat("x", 300)}), want: "300 bytes"},
		"a name for a show": {file: "7", text: rawTicket(uid, 1, []string{`\u001b[31m`}), want: "cannot be printed"},
		"of somebody else":  {file: "7", text: rawTicket(nobody, 2, gpus(2)), want: "holds a ticket of uid 65534"},
		"in a foreign file": {file: "7", text: rawTicket(uid, 2, gpus(2)), want: "belongs to uid 65534", root: true},
		"no number":         {file: "x", text: rawTicket(uid, 2, gpus(2))},
		"one too many":      {file: fmt.Sprint(maxTickets), text: rawTicket(uid, 2, gpus(2))},
		"not as we write":   {file: "007", text: rawTicket(uid, 2, gpus(2))},
	} {
		t.Run(name, func(t *testing.T) {
			of := uid
			if c.root {
				needRoot(t)
				of = nobody
			}
			dir := directory(t)
			plant(t, dir, "gangrun.@.ticket."+c.file, of, c.text)
			s := open(t, dir, "")
			w := refused(t, turnOf(t, s), req("r", 1, gpus(2), 2))
			if len(w.Spare) != 2 || len(w.Ahead) != 0 || len(w.Warnings) > 1 || (c.want != "") != (len(w.Warnings) == 1) || c.want != "" && !strings.Contains(w.Warnings[0], c.want) {
				t.Errorf("spare are %v, ahead %v, warnings %q", w.Spare, w.Ahead, w.Warnings)
			}
			take(t, s, req("r", 1, gpus(2), 2, gpus(2)...))
		})
	}
}

// TestNobodyDecidesOverHisTime: the process that decides has the order lock of the host, and releases it when
// its time is over.
func TestNobodyDecidesOverHisTime(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	take(t, s, req("r", 1, gpus(1), 1, "GPU0"))
	ended := errors.New("told to end")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if _, err := s.look(ctx); !errors.Is(err, ended) {
		t.Errorf("look: %v", err)
	}
	if held, w, err := s.try(ctx, req("q", 1, gpus(1), 1, "GPU0")); held != nil || !errors.Is(err, ended) {
		t.Errorf("try: %v, %+v, %v", held, w, err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	err := s.ordered(ctx, func(inner context.Context) error {
		cancel(ended)
		<-inner.Done()
		return inner.Err()
	})
	if !errors.Is(err, ended) {
		t.Errorf("ordered: %v", err)
	}
	if f, err := lock(s.path(kindOrder, ""), os.O_RDONLY); err != nil {
		t.Errorf("the order is not given back: %v", err)
	} else {
		f.drop()
	}
}

// TestTicketsAreWrittenIntoOwnFiles: a ticket in a file of another user would not count.
func TestTicketsAreWrittenIntoOwnFiles(t *testing.T) {
	needRoot(t)
	dir := directory(t)
	h := start(t, nobody, order{Dir: dir, Wait: true, Request: req("first", 9, gpus(1), 1)})
	h.want(t, "waiting")
	h.kill()
	refused(t, turnOf(t, open(t, dir, "")), req("second", 5, gpus(1), 1))
	l := list(t, dir)
	if len(l) != 1 || len(l[0].Waiting) != 1 || l[0].Waiting[0].Ticket.Run != "second" || len(l[0].Warnings) != 0 {
		t.Errorf("waiting are %+v", l)
	}
	for name, uid := range map[string]int{"0": nobody, "1": 0} {
		if info, err := os.Stat(dir + "/gangrun.@.ticket." + name); err != nil || owner(info) != uid {
			t.Errorf("ticket %s belongs to %v, %v; want %d", name, info, err, uid)
		}
	}
}

// TestAnotherNameDoesNotMatter: a user who can create a link to a file of gangrun can write to the file anyway.
func TestAnotherNameDoesNotMatter(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	take(t, s, req("r", 1, gpus(1), 1, "GPU0")).Release()
	for i, path := range []string{s.path(kindOrder, ""), s.path(kindGPU, "GPU0"), s.path(kindTicket, "0")} {
		if err := os.Link(path, fmt.Sprintf("%s/link%d", dir, i)); err != nil {
			t.Fatal(err)
		}
	}
	turn := turnOf(t, s)
	if w := refused(t, turn, req("r", 1, gpus(1), 1)); len(w.Warnings) != 0 || w.Leases[0].State != StateFree {
		t.Errorf("got %+v", w)
	}
	take(t, s, req("r", 1, gpus(1), 1, "GPU0"))
}

// TestOneBadHostDoesNotHideOthers also tests names that should not be printed.
func TestOneBadHostDoesNotHideOthers(t *testing.T) {
	dir := directory(t)
	take(t, open(t, dir, "good"), req("r", 1, gpus(1), 1, "GPU0"))
	if err := os.Mkdir(dir+"/gangrun.bad.order", 0o777); err != nil {
		t.Fatal(err)
	}
	plant(t, dir, "gangrun.%1B%5B31mred.gpu.GPU0", os.Geteuid(), "")
	plant(t, dir, "gangrun.\x1b[31mred.gpu.GPU0", os.Geteuid(), "")
	plant(t, dir, "gangrun.good.gpu.%0Alie", os.Geteuid(), "")
	plant(t, dir, "gangrun.good.gpu.%FF", os.Geteuid(), "")
	all := list(t, dir)
	var hosts []string
	for _, l := range all {
		hosts = append(hosts, l.Host)
	}
	if !slices.Equal(hosts, []string{"", "bad", "good"}) {
		t.Fatalf("the hosts are %q", hosts)
	}
	if l := all[0]; len(l.Warnings) != 2 || !strings.Contains(l.Warnings[0], "passed over") {
		t.Errorf("of names is told %q", l.Warnings)
	}
	if l := all[1]; len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "cannot list the leases of \"bad\"") {
		t.Errorf("the bad host tells %q", l.Warnings)
	}
	if l := all[2]; len(l.Leases) != 1 || l.Leases[0].State != StateHeld || len(l.Warnings) != 2 {
		t.Errorf("the good host tells %+v", l)
	}
	if gone, err := Release(t.Context(), dir); err != nil || len(gone) != 1 || gone[0].Host != "bad" || len(gone[0].Warnings) != 1 {
		t.Errorf("released %+v, %v", gone, err)
	}
	for _, l := range all {
		for _, text := range append(l.Warnings, l.Host) {
			if strings.ContainsAny(text, "\x1b\n") || strings.Contains(text, "\xff") {
				t.Errorf("%q is told as it is", text)
			}
		}
	}
}

// TestOtherLeasesOfTheHostAreTold: Waiting also has the GPUs that the ticket does not name.
func TestOtherLeasesOfTheHostAreTold(t *testing.T) {
	s := open(t, directory(t), "")
	take(t, s, req("hog", 9, gpus(3), 1, "GPU2"))
	w := refused(t, turnOf(t, s), req("r", 1, gpus(2), 1))
	if len(w.Leases) != 3 || w.Leases[2].Device != "GPU2" || w.Leases[2].State != StateHeld || len(w.Ready) != 2 {
		t.Errorf("got %+v", w)
	}
}

// TestMissingDirectoryIsToldOnce: if the directory disappears, there is one warning.
func TestMissingDirectoryIsToldOnce(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	turn := turnOf(t, s)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, err := s.void()
	if err == nil || strings.Contains(err.Error(), "held by another") || strings.Contains(err.Error(), "\n") {
		t.Errorf("void: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, _, err := turn.Try(ctx, req("r", 1, gpus(1), 1)); err == nil {
		t.Error("a turn without a directory")
	}
}
