package pause

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPauseLastsUntilItsTimeOrItsContextIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		length, limit, took time.Duration
		whole               bool
	}{
		"whole":          {time.Minute, time.Hour, time.Minute, true},
		"none":           {0, time.Hour, 0, true},
		"of the past":    {-time.Second, time.Hour, 0, true},
		"cut short":      {time.Minute, time.Second, time.Second, false},
		"too late":       {time.Minute, 0, 0, false},
		"none, too late": {0, 0, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.limit)
			defer cancel()
			began := time.Now()
			if whole := For(ctx, c.length); whole != c.whole || time.Since(began) != c.took {
				t.Errorf("%s: %v after %s", name, whole, time.Since(began))
			}
		})
	}
}
