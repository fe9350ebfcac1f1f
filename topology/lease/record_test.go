package lease

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sample() leaseRecord {
	return leaseRecord{Device: "GPU-1", Owner: Owner{Run: "r", User: "ada", UID: 7, PID: 9, Start: 11, Host: "h",
		Ranks: []int{0, 3}, Command: "python \"x\"\n", Since: epoch, Until: epoch.Add(time.Hour)}}
}

func TestRecordRoundTrip(t *testing.T) {
	data, err := encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	var got leaseRecord
	if err := decode(data, &got); err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := encode(strings.Repeat("x", maxRecord)); err == nil {
		t.Error("a record may be of any length")
	}
}

func TestEveryTearIsNoticed(t *testing.T) {
	data, err := encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	var got leaseRecord
	for n := range data {
		if err := decode(data[:n], &got); !errors.Is(err, errTruncated) {
			t.Fatalf("the first %d bytes give %v", n, err)
		}
		for bit := range 8 {
			flipped := bytes.Clone(data)
			flipped[n] ^= 1 << bit
			// The digits of the checksum may be in upper or lower case.
			if err := decode(flipped, &got); !errors.Is(err, errTruncated) && !bytes.EqualFold(flipped, data) {
				t.Fatalf("byte %d with bit %d flipped gives %v", n, bit, err)
			}
		}
	}
	// A long record was overwritten by the beginning of a shorter one.
	short, _ := encode(leaseRecord{Device: "x"})
	if err := decode(append(bytes.Clone(short), data[len(short):]...), &got); !errors.Is(err, errTruncated) {
		t.Errorf("two records in one give %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	data, err := encode(sample())
	if err != nil {
		f.Fatal(err)
	}
	waiter, err := encode(Waiter{Owner: sample().Owner, Ticket: Ticket{Run: "r", Since: epoch, Devices: gpus(2), Count: 1}})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{data, waiter, data[:40], nil, []byte("\n"), []byte(magic + "0 00000000\n\n"), []byte(magic + "2147483647 00000000\n{}\n")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []any{new(leaseRecord), new(Waiter)} {
			if err := decode(data, v); err != nil {
				if !errors.Is(err, errTruncated) {
					t.Errorf("decode fails with %v", err)
				}
				continue
			}
			again, err := encode(v)
			if err != nil {
				continue // a record whose times cannot be written, or that is too long
			}
			w := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			if err := decode(again, w); err != nil {
				t.Errorf("what was written does not read: %v", err)
			}
		}
	})
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"gangrun.@.gpu.GPU-1", "gangrun.h1.order", "gangrun.h%2E1.ticket.0", "gangrun.@.gpu.%zz", "gangrun...", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if host, kind, part, ok := split(name); ok {
			again := prefix + host + "." + kind
			if kind != kindOrder {
				again += "." + part
			}
			if again != name {
				t.Errorf("%q is read as %q", name, again)
			}
		}
		if part := escape(name); len(part) > 80 || strings.ContainsAny(part, "./\x00") || len(part) < 80 && !strings.Contains(part, "~") && unescape(part) != name {
			t.Errorf("%q becomes %q", name, part)
		}
	})
}
