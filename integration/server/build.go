package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// binaryVariable names the environment variable that holds the path of a binary
// to test instead of one built here.
const binaryVariable = "KVNET_BINARY"

// Binary is the path of a kvnet binary of this source tree. It is built once in a
// process, with the race detector if the test has it.
var Binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(binaryVariable); path != "" {
		return path, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	// The flags are those of "go test", so that both share what is compiled.
	args := []string{"build"}
	name := "kvnet-test"
	if raceDetector {
		args, name = append(args, "-race"), "kvnet-race"
	}
	dir := filepath.Join(root, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make folder for the binary: %w", err)
	}
	// Several test binaries may build at a time: each builds a file of its own,
	// and the last one to finish gives it its name.
	own := filepath.Join(dir, fmt.Sprintf(".%s-%d", name, os.Getpid()))
	defer func() { _ = os.Remove(own) }()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", own, "./cmd/kvnet")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build kvnet: %w\n%s", err, out)
	}
	path := filepath.Join(dir, name)
	if err := os.Rename(own, path); err != nil {
		return "", fmt.Errorf("name the binary: %w", err)
	}
	return path, nil
})

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", errors.New("find the module: the working directory is in none")
	}
	return filepath.Dir(file), nil
}
