package message

import "testing"

// TestRecord checks the levels and the texts of records of logs.
func TestRecord(t *testing.T) {
	for _, c := range []struct {
		line  string
		level Level
		text  string
	}{
		{`{"level":"error","msg":"cannot read shard","err":"gzip: invalid header"}`, Error, "cannot read shard: gzip: invalid header"},
		{`[shard1] {"time":"2026-01-01T00:00:00Z","level":"INFO","msg":"finished"}`, Info, "finished"},
		{`{"severity":"CRITICAL","message":"out of disk"}`, Fatal, "out of disk"},
		{`{"loss": 0.5, "step": 3}`, NoLevel, ""},
		{`time=2026-01-01T00:00:00Z level=error msg="index out of range" err="5 of 3"`, Error, "index out of range: 5 of 3"},
		{"I0609 11:02:19.118031 140211055 xla_bridge.py:863] Unable to initialize backend 'tpu'", Info, ""},
		{"F0101 10:00:00.000003 12 mesh.cc:77] Check failed", Fatal, ""},
		{"[2026-01-01 00:00:01.312] [wave3d] [rk3] [error] source wavelet has 0 samples", Error, ""},
		{"2026-01-01 00:00:01,312 - train - WARNING - slow", Warning, ""},
		{"02:27:00 2 ERRO probe with batch 32", Error, ""},
		{"epoch 3 loss 0.5 error 0.1", NoLevel, ""},
		{"ERROR: no such file", NoLevel, ""},
	} {
		if level, text := Record(c.line); level != c.level || text != c.text {
			t.Errorf("%q: got %d %q, want %d %q", c.line, level, text, c.level, c.text)
		}
	}
}
