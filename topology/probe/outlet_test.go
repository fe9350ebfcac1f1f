package probe

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestOutletLate checks that a reader after the deadline gets what was written before. It must neither wait for
// more nor read for ever.
func TestOutletLate(t *testing.T) {
	for said, want := range map[string]int{"": 0, "x": 1, strings.Repeat("x", 50_000): 50_000} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close() // the pipe still has a writer
		if _, err := io.WriteString(w, said); err != nil {
			t.Fatal(err)
		}
		o := &outlet{file: r}
		if err := o.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{want, 0} {
			if got, err := io.ReadAll(o); err != nil || len(got) != want {
				t.Errorf("of %d bytes %d were read: %v, want %d", len(said), len(got), err, want)
			}
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 4096))
		}
	}()
	o := &outlet{file: r}
	if err := o.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(o); err != nil || len(got) > maxPipe {
		t.Errorf("of an endless text %d bytes were read: %v", len(got), err)
	}
	r.Close()
	<-done
	w.Close()
}
