package metrics

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// made returns a valid file of each format by its name. The event file was written by a real writer; see
// testdata/README.md. The file of W&B follows the documented layout.
func made(t testing.TB) map[string][]byte {
	events, err := os.ReadFile(filepath.Join("testdata", "events.out.tfevents.digits"))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"events.out.tfevents.1": events,
		"run-1.wandb":           madeWandB(8),
		"log.csv":               []byte("epoch,loss,val_loss\n0,1.5,1.6\n1,1.2,1.3\n"),
		"log.jsonl":             []byte("{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": 1.5}\n{\"step\": 3, \"loss\": 1.2}\n"),
		"trainer_state.json":    []byte(`{"log_history": [{"step": 1, "loss": 2}, {"step": 2, "loss": 1.5}, {"step": 3, "loss": 1.4}]}`),
		"out":                   []byte("step 1 loss 2.0\nstep 2 loss 1.5\nstep 3 loss 1.25\n"),
	}
}

func TestTensorBoard(t *testing.T) {
	events := made(t)["events.out.tfevents.1"]
	format, points, err := read(t, "events.out.tfevents.1", events)
	if format != TensorBoard || err != nil || len(points) != 180 {
		t.Fatalf("%s, %d points, %v", format, len(points), err)
	}
	if p := points[0]; p.Series != "train/loss" || p.Step != 0 || p.Time < 1e9 || p.Value < 1 || p.Value > 2 {
		t.Errorf("the first point is %+v", p)
	}
	if p := points[len(points)-2]; p.Series != "validation/accuracy" || p.Step != 59 || p.Value < 0.9 {
		t.Errorf("the last accuracy is %+v", p)
	}
	// The directory says which data the metrics are of, because TensorFlow uses the same tag for both.
	dir := filepath.Join(t.TempDir(), "validation")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "events.out.tfevents.1.v2")
	if err := os.WriteFile(path, frame(scalarEvent(3, 1, "epoch_loss", 1.5)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, points, err := ReadAll(context.Background(), path); err != nil || say(points) != "validation/epoch_loss@3=1.5" {
		t.Errorf("validation: %s, %v", say(points), err)
	}
}

// scalarEvent returns an Event of TensorFlow 2 with a tensor of a kind.
func scalarEvent(step int64, kind uint64, tag string, v float64) []byte {
	var tensor []byte
	tensor = protowire.AppendVarint(protowire.AppendTag(tensor, 1, protowire.VarintType), kind)
	tensor = protowire.AppendBytes(protowire.AppendTag(tensor, 2, protowire.BytesType), nil)
	switch kind {
	case tensorFloat:
		tensor = protowire.AppendBytes(protowire.AppendTag(tensor, 4, protowire.BytesType), binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))))
	case tensorDouble:
		tensor = protowire.AppendBytes(protowire.AppendTag(tensor, 6, protowire.BytesType), binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
	case tensorInt64:
		tensor = protowire.AppendBytes(protowire.AppendTag(tensor, 10, protowire.BytesType), protowire.AppendVarint(nil, uint64(v)))
	}
	var value []byte
	value = protowire.AppendString(protowire.AppendTag(value, 1, protowire.BytesType), tag)
	value = protowire.AppendBytes(protowire.AppendTag(value, 8, protowire.BytesType), tensor)
	summary := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), value)
	event := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(1.7e9))
	event = protowire.AppendVarint(protowire.AppendTag(event, 2, protowire.VarintType), uint64(step))
	return protowire.AppendBytes(protowire.AppendTag(event, 5, protowire.BytesType), summary)
}

func frame(data []byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	out = binary.LittleEndian.AppendUint32(out, masked(out))
	return binary.LittleEndian.AppendUint32(append(out, data...), masked(data))
}

func TestTensors(t *testing.T) {
	for kind, want := range map[uint64]string{tensorFloat: "loss@7=1.5", tensorDouble: "loss@7=1.5", tensorInt64: "loss@7=1", 7: ""} {
		_, points, err := read(t, "events.out.tfevents.1", frame(scalarEvent(7, kind, "loss", 1.5)))
		if say(points) != want || err != nil {
			t.Errorf("kind %d: %s, %v", kind, say(points), err)
		}
	}
	large := append(frame(make([]byte, maxRecord+1)), frame(scalarEvent(7, tensorFloat, "loss", 1.5))...)
	if _, points, err := read(t, "events.out.tfevents.1", large); say(points) != "loss@7=1.5" || err != nil {
		t.Errorf("after a large record: %s, %v", say(points), err)
	}
}

// TestDamaged checks damaged files: the points before the damage are found, and the error has the reason.
func TestDamaged(t *testing.T) {
	files := made(t)
	events, run := files["events.out.tfevents.1"], files["run-1.wandb"]
	flip := func(data []byte, i int) []byte {
		data = bytes.Clone(data)
		data[i] ^= 1
		return data
	}
	for _, c := range []struct {
		name   string
		text   []byte
		reason string
		some   bool // there are points before the damage
	}{
		{"events.out.tfevents.1", flip(events, 3), "length", false},
		{"events.out.tfevents.1", flip(events, 9), "length", false},
		{"events.out.tfevents.1", flip(events, 14), "record is wrong", false},
		{"events.out.tfevents.1", flip(events, len(events)-1), "record is wrong", true},
		{"events.out.tfevents.1", flip(events, len(events)/2), "wrong", true},
		{"events.out.tfevents.1", append(bytes.Clone(events), make([]byte, 64)...), "length", true},
		{"events.out.tfevents.1", frame([]byte{0xff, 0xff, 0xff}), "no event", false},
		{"events.out.tfevents.1", []byte("this is no event file at all\n"), "length", false},
		{"run-1.wandb", flip(run, 6), "version", false},
		{"run-1.wandb", flip(run, 7), "record is wrong", false},
		{"run-1.wandb", flip(run, 20), "record is wrong", false},
		{"run-1.wandb", flip(run, 13), "wrong", false},
		{"run-1.wandb", flip(run, len(run)-1), "record is wrong", true},
		{"run-1.wandb", append(bytes.Clone(run), part(partMiddle, []byte("x"))...), "disorder", true},
		{"run-1.wandb", append(bytes.Clone(run), 1, 2, 3, 4, 0xff, 0xff, 1), "longer", true},
	} {
		_, points, err := read(t, c.name, c.text)
		damaged := new(DamagedError)
		if !errors.As(err, &damaged) || !strings.Contains(damaged.Reason, c.reason) || (len(points) > 0) != c.some {
			t.Errorf("%s, %s: %d points, %v", c.name, c.reason, len(points), err)
		}
	}
	// Wherever a file is cut, it is a file that still grows.
	for cut := range 300 {
		for _, err := range []error{(&tensorBoard{}).add(events[:len(events)-cut], func(Point) {}), (&wandb{}).add(run[:len(run)-cut], func(Point) {})} {
			if err != nil {
				t.Fatalf("cut by %d: %v", cut, err)
			}
		}
	}
}

// part returns a part of a W&B record.
func part(kind byte, data []byte) []byte {
	body := append([]byte{kind}, data...)
	out := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(body))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(data)))
	return append(out, body...)
}

// madeWandB returns the file of an offline run with that many steps. Each step has a record of some size, so
// that records cross the limits of blocks.
func madeWandB(steps int) []byte {
	out := bytes.Clone(wandbHeader)
	write := func(record []byte) {
		for first := true; ; first = false {
			left := wandbBlock - len(out)%wandbBlock
			if left < wandbHead {
				out = append(out, make([]byte, left)...)
				left = wandbBlock
			}
			n := min(len(record), left-wandbHead)
			last := n == len(record)
			kind := byte(partMiddle)
			switch {
			case first && last:
				kind = partFull
			case first:
				kind = partFirst
			case last:
				kind = partLast
			}
			out = append(out, part(kind, record[:n])...)
			if record = record[n:]; last {
				return
			}
		}
	}
	item := func(value string, names ...string) []byte {
		var b []byte
		for _, name := range names {
			num := protowire.Number(1)
			if len(names) > 1 {
				num = 2
			}
			b = protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), name)
		}
		return protowire.AppendString(protowire.AppendTag(b, 16, protowire.BytesType), value)
	}
	for i := range steps {
		var history []byte
		for _, it := range [][]byte{item(fmt.Sprint(2.0/float64(i+1)), "loss"), item("NaN", "eval", "loss"), item(`"a table"`, "table"), item(fmt.Sprint(i*10), "_runtime")} {
			history = protowire.AppendBytes(protowire.AppendTag(history, 1, protowire.BytesType), it)
		}
		step := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(i))
		history = protowire.AppendBytes(protowire.AppendTag(history, 2, protowire.BytesType), step)
		record := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), history)
		write(protowire.AppendBytes(protowire.AppendTag(record, 4, protowire.BytesType), make([]byte, 9000))) // a record of output, which has no metrics
	}
	return out
}

func TestWandB(t *testing.T) {
	format, points, err := read(t, "run-1.wandb", madeWandB(40))
	if format != WandB || err != nil || len(points) != 80 {
		t.Fatalf("%s, %d points, %v", format, len(points), err)
	}
	if got := say(points[78:]); got != "eval/loss@39=NaN loss@39=0.05" || points[79].Time != 390 {
		t.Errorf("last: %s at %g", got, points[79].Time)
	}
}
