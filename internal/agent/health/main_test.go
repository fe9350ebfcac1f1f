package health

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(growEnv) != "" {
		grow()
	}
	goleak.VerifyTestMain(m)
}
