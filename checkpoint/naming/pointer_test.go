package naming

import (
	"slices"
	"testing"
)

// TestPointed checks which checkpoints the content of a file such as latest names.
func TestPointed(t *testing.T) {
	for content, want := range map[string][]string{
		"global_step20": {"global_step20"}, "20\n": {"20", "iter_0000020", "global_step_20", "global_step20"}, "": nil, "a\nb": nil,
		"model_checkpoint_path: \"ckpt-3\"\nall_model_checkpoint_paths: \"/x/ckpt-2\"\n": {"ckpt-3", "ckpt-2"},
		"step_9/model.pt": {"model.pt", "step_9"}, "/d/step_9/a/model.pt\n": {"model.pt", "step_9"}, "/e/step_9/model.pt": {"model.pt"}, "../d/model.pt": {"model.pt"},
	} {
		if got := Pointed("/d", content); !slices.Equal(got, want) {
			t.Errorf("%q names %q", content, got)
		}
	}
}
