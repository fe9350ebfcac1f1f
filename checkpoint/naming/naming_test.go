package naming

import (
	"strings"
	"testing"
)

func TestStep(t *testing.T) {
	for name, want := range map[string]int64{
		"ckpt-000020.pt": 20, "step_100": 100, "epoch=3-step=400.ckpt": 400, "epoch=3-step=400-v1.ckpt": 400,
		"step=400-epoch=3.ckpt": 400, "epoch=3-step=400-val_loss=0.25.ckpt": 400, "epoch=3-val_loss=0.25.ckpt": 3,
		"checkpoint_epoch_10.pth": 10, "checkpoint.pth.tar": -1, "model-20.weights.h5": 20, "model.h5": -1, "last.pt": -1,
		"model.ckpt-100": 100, "global_step200": 200, "iter_0000100": 100, "iteration-7.bin": 7, "0000300": 300, "500": 500,
		"model-00001-of-00002.safetensors": -1, "step_30-00001-of-00002.safetensors": 30, "ckpt-20-rank1.pt": 20, "ckpt_60_rank_1": 60, "model.60.shard-1": 60, "60-rank1": 60,
		"ckpt-70.rank3": 70, "checkpoint_0060_0001-of-0002": 60, "rank0-60.npz": 60, "rank_0_of_4_step_60.pt": 60, "w-60-mp_rank_00-pp1.pt": 60,
		"model_60_part2.bin": 60, "ckpt-60-node1-local0.pt": 60, "shard0003.pt": -1, "rank1.pt": -1, "60_world_size_8.pt": 60, "franke-5.pt": 5, "apart7.pt": 7,
		"step_20_rank_1.pt": 20, "ckpt-20261121-095912.pt": -1, "2026-11-21T09-59-12.pt": -1, "2026-11-21_step_12.pt": 12,
		"": -1, "99999999999999999999.pt": -1, "ckpt.20": 20, "Updates_3": 3, "best-v2.ckpt": -1, "ckpt-12.tar.gz": 12,
		"checkpoint-9007199254740993": 9007199254740993,
		"rl_model_20000000_steps.zip": 20000000, "rl_model_120000000_steps.zip": 120000000, "rl_model_190000000_steps.zip": 190000000,
		"rl_model_200000000_steps": 200000000, "step_120000000.pt": 120000000, "melt.restart.120000000": 120000000, "epoch=19-step=20000000.ckpt": 20000000,
		"step_20261121.pt": 20261121, "ckpt-20261121095912.pt": -1, "20261121_3.pt": 3, "update_2026-11-21.pt": -1, "step_20261121-0001-of-0008": 20261121, "20261121-0959123": 959123,
		"model_ep10.pt": 10, "cp-0004.weights.h5": 4, "ep0-ba20-rank0": 20, "tp0-ep3-70.pt": 70,
	} {
		if got := Step(name); got != want {
			t.Errorf("Step(%q) is %d, want %d", name, got, want)
		}
	}
}

// TestShard checks which numbers are ranks or shards, and what the names of one checkpoint have in common.
func TestShard(t *testing.T) {
	for name, want := range map[string]string{
		"ckpt-20-rank1.pt": "ckpt-20-rank*.pt", "model-1-of-8.pt": "model-*-of-8.pt", "ep0-ba20-rank3": "ep*-ba20-rank*", "tp0-ep3-70.pt": "tp*-ep*-70.pt",
		"w_tp1_cp0.pt": "w_tp*_cp*.pt", "model_ep1.pt": "", "netG_ep_10.pth": "", "cp-0001.weights.h5": "", "step_10.pt": "",
	} {
		set, numbers, _, ok := Shard(name)
		if ok != (want != "") || ok && set != want || ok != (len(numbers) > 0) {
			t.Errorf("Shard(%q) is %q, %v, %v; want %q", name, set, numbers, ok, want)
		}
	}
}

func TestTemporary(t *testing.T) {
	for _, name := range []string{".ckpt.pt.x8f2", "ckpt.pt.tmp", "ckpt.pt.tmp.1234", "ckpt.tmp.pt", "ckpt.pt.part", "ckpt.pt~",
		"tmp-checkpoint-500", "20.orbax-checkpoint-tmp-1700000", "model.ckpt-1.data-00000-of-00001.tempstate123", "ckpt-1_temp",
		"CKPT.TMP", "ckpt.pt.incomplete"} {
		if !Temporary(name) {
			t.Errorf("%q is not taken for temporary", name)
		}
	}
	for _, name := range []string{"ckpt.pt", "temperature-20.pt", "part-0001.pt", "model.part1.pt", "tmpl.pt", "attempt.pt", "stamp.tmpl", "a~b"} {
		if Temporary(name) {
			t.Errorf("%q is taken for temporary", name)
		}
	}
}

func FuzzStep(f *testing.F) {
	f.Add("epoch=3-step=400.ckpt")
	f.Add("2026-11-21T09-59-12.tar.gz")
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > 255 {
			return
		}
		n := Step(name)
		if n < -1 || n >= 0 && !strings.ContainsAny(name, "0123456789") {
			t.Errorf("Step(%q) is %d", name, n)
		}
		if strings.ContainsAny(name, "/.-_=") || Temporary(name) {
			return
		}
		if got := Step("step_7-" + name); got < 7 && n < 7 && !strings.ContainsAny(strings.ToLower(name), "0123456789") {
			t.Errorf("Step(step_7-%q) is %d", name, got)
		}
	})
}
