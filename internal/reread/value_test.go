package reread

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// replace puts a file in the place of another one at once.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// pair is a Value of two files that fit if they are equal.
func pair(t *testing.T, log *slog.Logger) (v *Value[string], a, b string) {
	t.Helper()
	dir := t.TempDir()
	a, b = filepath.Join(dir, "a"), filepath.Join(dir, "b")
	replace(t, a, "1")
	replace(t, b, "1")
	v, err := New("the pair", log, func() (string, error) {
		x, err := os.ReadFile(a)
		if err != nil {
			return "", err
		}
		y, err := os.ReadFile(b)
		if err == nil && !bytes.Equal(x, y) {
			err = errors.New("they don't fit")
		}
		return string(x), err
	}, a, b)
	if err != nil {
		t.Fatal(err)
	}
	return v, a, b
}

func TestFilesThatFitCountAndOthersLeaveTheFormerValue(t *testing.T) {
	var log bytes.Buffer
	v, a, b := pair(t, slog.New(slog.NewTextHandler(&log, nil)))
	want := func(value string, errors, news int) {
		t.Helper()
		for range 3 {
			if got := v.Get(); got != value {
				t.Errorf("%q, want %q", got, value)
			}
		}
		if e, n := strings.Count(log.String(), "level=ERROR"), strings.Count(log.String(), "read again"); e != errors || n != news {
			t.Errorf("%d errors and %d times read again, want %d and %d:\n%s", e, n, errors, news, log.String())
		}
	}
	want("1", 0, 0)
	replace(t, a, "2")
	want("1", 1, 0)
	replace(t, b, "2")
	want("2", 1, 1)
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	want("2", 2, 1)
	replace(t, b, "3")
	want("2", 3, 1)
	replace(t, a, "3")
	want("3", 3, 2)
}

func TestFilesThatCannotBeUsedAreAnErrorAtFirst(t *testing.T) {
	bad := errors.New("bad")
	load := func() (int, error) { return 0, bad }
	if _, err := New("the thing", slog.New(slog.DiscardHandler), load); !errors.Is(err, bad) || !strings.Contains(err.Error(), "the thing") {
		t.Errorf("error %v", err)
	}
	if _, err := New("the thing", slog.New(slog.DiscardHandler), load, "/nowhere/at-all"); err == nil || !strings.Contains(err.Error(), "/nowhere/at-all") {
		t.Errorf("error %v", err)
	}
}

// TestManyMayAsk while the files change; the race detector judges.
func TestManyMayAsk(t *testing.T) {
	v, a, b := pair(t, slog.New(slog.DiscardHandler))
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 200 {
				v.Get()
			}
		})
	}
	replace(t, a, "2")
	replace(t, b, "2")
	asking.Wait()
	if got := v.Get(); got != "2" {
		t.Errorf("%q at the end", got)
	}
}
