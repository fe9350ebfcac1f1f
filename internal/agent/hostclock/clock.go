// Package hostclock reads the host's clock. All times that an agent reports to its controller
// are from this clock. Limits and intervals go by time.Now.
package hostclock

import (
	"os"
	"sync"
	"time"
)

// testEnv is the variable with which a test starts an agent whose clock is wrong: how
// far it is ahead, as time.ParseDuration reads it.
const testEnv = "GANGRUN_TEST_CLOCK"

// Offset returns how far this host's clock is ahead; 0 outside of tests.
var Offset = sync.OnceValue(func() time.Duration {
	by, _ := time.ParseDuration(os.Getenv(testEnv)) // 0 where nobody has set it
	return by
})

// Now returns the time by the host's clock.
func Now() time.Time { return time.Now().Add(Offset()) }
