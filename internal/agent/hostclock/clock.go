// Package hostclock reads the host's clock. All times that an agent reports to its controller are from this
// clock. For limits and intervals, agents use time.Now.
package hostclock

import (
	"os"
	"sync"
	"time"
)

// testEnv is a variable with which tests give an agent a wrong clock. Its value is how far the clock is ahead, in the
// format of time.ParseDuration.
const testEnv = "GANGRUN_TEST_CLOCK"

// Offset returns how far a test has set this host's clock ahead. Outside of tests it is 0.
var Offset = sync.OnceValue(func() time.Duration {
	by, _ := time.ParseDuration(os.Getenv(testEnv)) // by is 0 if the variable is not set
	return by
})

// Env returns the environment variable, as NAME=VALUE, with which another agent of this host uses the same
// clock. Outside of tests, it returns nothing.
func Env() []string {
	if by, ok := os.LookupEnv(testEnv); ok {
		return []string{testEnv + "=" + by}
	}
	return nil
}

// Now returns the time by the host's clock.
func Now() time.Time { return time.Now().Add(Offset()) }
