package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Identity is what a data directory says about itself, so that a restart needs
// nobody to tell it where it belongs. It is written before the engine starts for
// the first time.
type Identity struct {
	Schema int `json:"schema"`
	// Name is the name that the server had when it was started last.
	Name string `json:"name"`
	// Cluster is the plan by which it came to be. Its Members are those of that
	// day; Store.Members tells those of today.
	Cluster Cluster `json:"cluster"`
	// Started says that the store has been open once. From then on the
	// directory without the engine's data is a loss of data, not a beginning.
	Started bool `json:"started,omitempty"`
	// Previous is the id of the cluster that the data was restored from, and
	// Epoch the least that the epoch has to become; see adoptMeta.
	Previous string `json:"previous,omitempty"`
	Epoch    uint32 `json:"epoch,omitempty"`
}

const identitySchema = 1

// identityFile is the name of the file in the data directory.
const identityFile = "cluster.json"

// lockFile is the name of the file that its only user has locked.
const lockFile = "lock"

// ErrOtherCluster says that the data directory, or the store that was met, is
// another cluster's.
var ErrOtherCluster = errors.New("this is another cluster's")

// ReadIdentity reads what a data directory says about itself. The error is
// fs.ErrNotExist for an empty directory and for one that a version of kvnet
// without clusters has made and this one hasn't opened yet.
func ReadIdentity(dir string) (Identity, error) {
	path := filepath.Join(dir, identityFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return Identity{}, fmt.Errorf("read which cluster the data belongs to: %w", err)
	}
	var id Identity
	if err := json.Unmarshal(b, &id); err != nil {
		return Identity{}, fmt.Errorf("%w: read %q: %w", ErrDamaged, path, err)
	}
	if id.Schema > identitySchema {
		return Identity{}, fmt.Errorf("read %q: %w: its form is version %d, this kvnet knows %d", path, ErrNewer, id.Schema, identitySchema)
	}
	if id.Cluster.ID == "" {
		return Identity{}, fmt.Errorf("%w: read %q: there is no cluster id", ErrDamaged, path)
	}
	return id, nil
}

// HasData tells whether the directory holds a store, so that a server that is
// started on it neither founds a cluster nor joins one.
func HasData(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "etcd", "member", "wal"))
	return err == nil
}

// writeIdentity replaces the file, whatever happens meanwhile.
func writeIdentity(dir string, id Identity) error {
	id.Schema = identitySchema
	b, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return fmt.Errorf("write which cluster the data belongs to: %w", err)
	}
	if err := writeFile(filepath.Join(dir, identityFile), append(b, '\n')); err != nil {
		return fmt.Errorf("write which cluster the data belongs to: %w", err)
	}
	return nil
}

// writeFile writes a file that is there whole or not at all, also after a power
// failure.
func writeFile(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// identify finds out which cluster the directory belongs to, or is going to
// belong to, and writes it down. An identity without cluster id is that of an
// old data directory: the store in it knows.
func identify(c Config) (Identity, error) {
	if err := c.Cluster.check(c.Name); err != nil {
		return Identity{}, err
	}
	stored, err := ReadIdentity(c.Dir)
	known := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Identity{}, err
	}
	data := HasData(c.Dir)
	switch {
	case data && !known:
		return Identity{Name: c.Name}, nil
	case known && !data && stored.Started:
		return Identity{}, fmt.Errorf("%w: %q says that this server is a member of cluster %s, but the data is gone; "+
			"remove the file to begin anew, and this member from the cluster if there are others",
			ErrDamaged, filepath.Join(c.Dir, identityFile), stored.Cluster.ID)
	case known && c.Cluster.ID != "" && c.Cluster.ID != stored.Cluster.ID && data:
		return Identity{}, fmt.Errorf("%w: the data is of cluster %s, not of %s", ErrOtherCluster, stored.Cluster.ID, c.Cluster.ID)
	case known && (data || c.Cluster.ID == ""):
		if stored.Name != "" && stored.Name != c.Name {
			c.Logger.Warn("this server had another name when it was started last on this data; to the others it has that name no more",
				"name", c.Name, "before", stored.Name)
		}
		return stored, nil
	}
	id := Identity{Name: c.Name, Cluster: c.Cluster}
	if id.Cluster.ID == "" {
		if id.Cluster.ID, err = NewClusterID(); err != nil {
			return Identity{}, err
		}
	}
	return id, writeIdentity(c.Dir, id)
}

// NewClusterID makes the random name of a cluster that is to be founded.
func NewClusterID() (string, error) {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return "", fmt.Errorf("make a cluster id: %w", err)
	}
	return hex.EncodeToString(id[:]), nil
}
