package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A restored store is made in a directory of its own under the data directory
// and put in its place when it is whole, so that an interruption at any moment
// leaves the old data or the new.

// staging is where it is made. The file "ready" in it is the moment at which the
// new data counts.
func staging(dir string) string { return filepath.Join(dir, "restoring") }

// stage makes an empty staging directory.
func stage(dir string) (string, error) {
	path := staging(dir)
	if err := os.RemoveAll(path); err != nil {
		return "", fmt.Errorf("remove what an interrupted restore has left: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("make the directory to restore into: %w", err)
	}
	return path, nil
}

// commitStage makes what is in the staging directory count, with its identity,
// and puts it in its place.
func commitStage(dir string, id Identity) error {
	path := staging(dir)
	if err := writeIdentity(path, id); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(path, "ready"), nil); err != nil {
		return fmt.Errorf("finish the restored store: %w", err)
	}
	return install(dir)
}

// install puts a restored store in its place, if there is one that counts. What
// was there before is kept under another name.
func install(dir string) error {
	path := staging(dir)
	switch _, err := os.Stat(filepath.Join(path, "ready")); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look for a restored store: %w", err)
	}
	if err := moveStage(dir, path); err != nil {
		return fmt.Errorf("put the restored store in its place: %w", err)
	}
	return nil
}

func moveStage(dir, path string) error {
	from, to := filepath.Join(path, "etcd"), filepath.Join(dir, "etcd")
	if exists(from) {
		if exists(to) {
			if err := os.Rename(to, filepath.Join(dir, fmt.Sprintf("etcd.replaced-%d", time.Now().UnixNano()))); err != nil {
				return err
			}
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	if from := filepath.Join(path, identityFile); exists(from) {
		if err := os.Rename(from, filepath.Join(dir, identityFile)); err != nil {
			return err
		}
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
