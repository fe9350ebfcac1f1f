package testimage

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/noskip"
)

//go:embed build
var buildScript string

// cache is the user's directory for caches. It is read before a test changes HOME.
var cache, cacheErr = os.UserCacheDir()

// Debian returns the path of an OCI archive, which tests must not change. The image has Debian with
// Python, mpi4py, numpy, Open MPI, and MPICH's library and mpiexec. The archive has 70 MB, and the
// unpacked image 222 MB. The first call on a machine makes the archive. That takes a minute, and
// needs root and Debian's packages. Later calls find the archive.
func Debian(t testing.TB) string {
	t.Helper()
	return cached(t)
}

// Torch is like Debian. The image also has PyTorch for CPUs.
func Torch(t testing.TB) string {
	t.Helper()
	return cached(t, "python3-torch")
}

// cached makes an image in the user's directory for caches.
func cached(t testing.TB, packages ...string) string {
	t.Helper()
	if cacheErr != nil {
		t.Fatal(cacheErr)
	}
	return debian(t, cache, packages...)
}

// debian is Debian with a directory for caches, and with at most one package more.
func debian(t testing.TB, cache string, packages ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		noskip.Skip(t, "only root can make an image of Debian")
	}
	script := filepath.Join(t.TempDir(), "build")
	if err := os.WriteFile(script, []byte(buildScript), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{script}, packages...)...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("make an image of Debian: %v\n%s", err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}
