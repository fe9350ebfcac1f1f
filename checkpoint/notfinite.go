package checkpoint

import (
	"context"
	"fmt"

	"github.com/gangrun/gangrun/checkpoint/blob"
)

// NaN reads the checkpoint at path, and says which of its numbers are NaN or Inf. It returns "" if none is, or if its
// format does not show its numbers. -Inf alone is normal: masks have it.
func NaN(ctx context.Context, path string) (why string, err error) {
	seen := &blob.Seen{Deep: true}
	if _, _, err := verify(ctx, path, seen); err != nil {
		return "", err
	}
	return notFinite(seen), nil
}

// notFinite says which numbers of a checkpoint are NaN or Inf; "" if none is.
func notFinite(seen *blob.Seen) string {
	n := seen.Numbers
	if n.NaN+n.PosInf == 0 {
		return ""
	}
	return fmt.Sprintf("%s has %d NaN and %d Inf, of %d numbers in all", n.First, n.NaN, n.PosInf+n.NegInf, n.Scanned)
}
