package lease

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOldestTicketFirst(t *testing.T) {
	s := open(t, directory(t), "")
	devices := gpus(4)
	hog := take(t, s, req("hog", 100, devices, 1, "GPU0"))
	big, small := turnOf(t, s), turnOf(t, s)
	refused(t, big, req("big", 10, devices, 4, devices...))
	w := refused(t, small, req("small", 5, devices, 1, "GPU1"))
	if len(w.Ahead) != 1 || w.Ahead[0].Ticket.Run != "big" || !slices.Equal(w.Blocking, []string{"big"}) || len(w.Spare) != 0 {
		t.Errorf("small waits for %+v", w)
	}
	// The end of the holder is not known. So it holds the GPU for at least Horizon.
	trial := req("trial", 4, devices, 1, "GPU1")
	trial.Limit = Horizon / 2
	if err := take(t, s, trial).Release(); err != nil {
		t.Fatal(err)
	}
	if err := hog.Release(); err != nil {
		t.Fatal(err)
	}
	if w := refused(t, turnOf(t, s), trial); !slices.Equal(w.Blocking, []string{"big"}) {
		t.Errorf("a trial went ahead of a gang that can start: %+v", w)
	}
	held, _, err := big.Try(t.Context(), req("big", 10, devices, 4, devices...))
	if err != nil || held == nil {
		t.Fatalf("big: %v", err)
	}
	defer held.Release()
	if err := big.Close(); err != nil {
		t.Fatal(err)
	}
	if w := refused(t, small, req("small", 5, devices, 1, "GPU1")); len(w.Ahead) != 0 {
		t.Errorf("ahead of small are %+v", w.Ahead)
	}
}

func TestTicketsOfTheDeadAreVoid(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "h")
	devices := gpus(2)
	take(t, s, req("hog", 100, devices, 1, "GPU0"))
	waits := start(t, 0, order{Dir: dir, Host: "h", Wait: true, Request: req("waits", 9, devices, 2, devices...)})
	waits.want(t, "waiting")
	turn := turnOf(t, s)
	refused(t, turn, req("next", 5, devices, 1, "GPU1"))
	waits.kill()
	held, w, err := turn.Try(t.Context(), req("next", 5, devices, 1, "GPU1"))
	if err != nil || held == nil {
		t.Fatalf("a dead gang is waited for: %+v, %v", w, err)
	}
	held.Release()
	// The next waiting gang uses the void file.
	refused(t, turnOf(t, s), req("third", 1, devices, 2))
	files, err := filepath.Glob(dir + "/*.ticket.*")
	if err != nil || len(files) != 2 {
		t.Errorf("tickets are %v", files)
	}
}

func TestWaitWakesForReleaseAndDeath(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	s.repoll = time.Hour // only an event may end the wait
	turn := turnOf(t, s)
	for name, end := range map[string]func(*helper){
		"release": func(h *helper) { h.end(t) },
		"death":   func(h *helper) { h.kill() },
	} {
		h := start(t, 0, order{Dir: dir, Request: req(name, 9, gpus(1), 1, "GPU0")})
		h.want(t, "held")
		// The Turn has already seen what the helper did with its ticket.
		drained, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		for turn.Wait(drained) == nil {
		}
		cancel()
		refused(t, turn, req("waits", 5, gpus(1), 1, "GPU0"))
		woken := make(chan error, 1)
		go func() { woken <- turn.Wait(t.Context()) }()
		end(h) // releases the lock of the helper
		select {
		case err := <-woken:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("a waiter does not wake for the %s", name)
		}
		held, waiting, err := turn.Try(t.Context(), req("waits", 5, gpus(1), 1, "GPU0"))
		if err != nil || held == nil {
			t.Fatalf("after the %s: %+v, %v", name, waiting, err)
		}
		held.Release()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := turn.Wait(ctx); err == nil {
		t.Error("Wait outlives its context")
	}
}

// TestStuckDeciderIsNamed: gangrun waits for a process that does not release the order lock, but not for ever.
func TestStuckDeciderIsNamed(t *testing.T) {
	dir := directory(t)
	s := open(t, dir, "")
	f, err := lock(s.path(kindOrder, ""), os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer f.drop()
	for limit, want := range map[time.Duration]string{patience / 2: context.DeadlineExceeded.Error(), time.Hour: "locked by another process for 30s; look for"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			begin := time.Now()
			_, _, err := turnOf(t, s).Try(ctx, req("r", 1, gpus(1), 1, "GPU0"))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("while another process decides: %v, want %q", err, want)
			}
			if took := time.Since(begin); took < min(limit, patience) || took > min(limit, patience+time.Second) {
				t.Errorf("it was given up after %s", took)
			}
		})
	}
}
