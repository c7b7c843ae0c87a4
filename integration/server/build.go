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

// The environment variables that hold the path of a binary to test instead of one
// built here.
const (
	binaryVariable       = "KVNET_BINARY"
	noGenerationVariable = "KVNET_NOGENERATION_BINARY"
	togetherVariable     = "KVNET_TOGETHER_BINARY"
)

// Binary is the path of a kvnet binary of this source tree. It is built once in a
// process, with the race detector if the test has it.
var Binary = sync.OnceValues(func() (string, error) {
	return binary(binaryVariable, "kvnet")
})

// NoGenerationBinary is Binary of a server that sends no generation ids to switches,
// for a test of what they are for.
var NoGenerationBinary = sync.OnceValues(func() (string, error) {
	return binary(noGenerationVariable, "kvnet-nogeneration", "-tags", "kvnet_nogeneration")
})

// TogetherBinary is Binary of a server that has the leader of the store's engine
// where kvnet's leader is, for figures of a fail-over of both.
var TogetherBinary = sync.OnceValues(func() (string, error) {
	return binary(togetherVariable, "kvnet-together", "-tags", "kvnet_together")
})

// binary is what the environment variable names, or is built now.
func binary(variable, name string, flags ...string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return path, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	// The flags are those of "go test", so that both share what is compiled.
	args := append([]string{"build"}, flags...)
	if raceDetector {
		args, name = append(args, "-race"), name+"-race"
	} else {
		name += "-test"
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
}

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
