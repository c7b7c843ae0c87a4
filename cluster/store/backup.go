package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A backup is one line that says what it is, one line of JSON with BackupInfo,
// a snapshot as etcd makes it, and the SHA-256 of everything before.

const (
	backupMagic  = "kvnet backup\n"
	backupSchema = 1
	// maxHeader bounds the line of JSON.
	maxHeader = 64 << 10
)

// ErrBadBackup says that a file is no backup, or is cut or changed.
var ErrBadBackup = errors.New("this is not a whole backup of kvnet")

// BackupInfo is what a backup says about itself.
type BackupInfo struct {
	Schema    int    `json:"schema"`
	ClusterID string `json:"clusterId"`
	// Epoch is the one in force when the backup was made.
	Epoch uint32 `json:"epoch"`
	// Revision is one that the backup contains; it may contain later writes too,
	// those that came while it began.
	Revision int64     `json:"revision"`
	Time     time.Time `json:"time"`
	// Member is the name of the server that made it.
	Member string `json:"member"`
}

// Backup writes everything that is stored to w. It contains every write that was
// acknowledged before the call. Writes go on meanwhile.
func (s *Store) Backup(ctx context.Context, w io.Writer) (info BackupInfo, err error) {
	ctx, cancel := s.during(ctx)
	defer cancel()
	if s.engine == nil {
		return BackupInfo{}, fmt.Errorf("back up the store: %w", ErrNotEmbedded)
	}
	if info, err = s.backup(ctx, w); err != nil {
		return BackupInfo{}, fmt.Errorf("back up the store: %w", s.reason(err))
	}
	return info, nil
}

func (s *Store) backup(ctx context.Context, w io.Writer) (BackupInfo, error) {
	revision, err := s.Linearizable(ctx)
	if err != nil {
		return BackupInfo{}, err
	}
	m, _, err := s.readMeta(ctx)
	if err != nil {
		return BackupInfo{}, err
	}
	info := BackupInfo{
		Schema: backupSchema, ClusterID: m.ClusterID, Epoch: m.Epoch, Revision: revision,
		Time: time.Now().UTC(), Member: s.c.Name,
	}
	header, err := json.Marshal(info)
	if err != nil {
		return BackupInfo{}, err
	}
	snapshot, err := s.client.Snapshot(ctx)
	if err != nil {
		return BackupInfo{}, classify(err)
	}
	sum := sha256.New()
	all := io.MultiWriter(w, sum)
	_, err = io.Copy(all, io.MultiReader(bytes.NewReader([]byte(backupMagic)), bytes.NewReader(append(header, '\n')), snapshot))
	if err = errors.Join(err, snapshot.Close()); err != nil {
		return BackupInfo{}, err
	}
	_, err = w.Write(sum.Sum(nil))
	return info, err
}

// receiveBackup checks a backup and leaves etcd's part of it in the file path.
func receiveBackup(r io.Reader, path string) (BackupInfo, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return BackupInfo{}, err
	}
	info, err := receive(bufio.NewReaderSize(r, 1<<20), f)
	return info, errors.Join(err, f.Close())
}

func receive(r *bufio.Reader, f *os.File) (BackupInfo, error) {
	sum := sha256.New()
	in := io.TeeReader(r, sum)
	magic := make([]byte, len(backupMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != backupMagic {
		return BackupInfo{}, ErrBadBackup
	}
	line, err := readLine(in)
	if err != nil {
		return BackupInfo{}, err
	}
	var info BackupInfo
	if err := json.Unmarshal(line, &info); err != nil {
		return BackupInfo{}, fmt.Errorf("%w: %w", ErrBadBackup, err)
	}
	if info.Schema > backupSchema {
		return BackupInfo{}, fmt.Errorf("%w: the backup's form is version %d, this kvnet knows %d", ErrNewer, info.Schema, backupSchema)
	}
	if info.ClusterID == "" {
		return BackupInfo{}, fmt.Errorf("%w: it names no cluster", ErrBadBackup)
	}
	// The sum at the end is known to be the end only when nothing follows.
	n, err := io.Copy(f, r)
	if err != nil {
		return BackupInfo{}, fmt.Errorf("read the backup: %w", err)
	}
	body := n - sha256.Size
	if body <= 0 {
		return BackupInfo{}, fmt.Errorf("%w: it is cut", ErrBadBackup)
	}
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, body)); err != nil {
		return BackupInfo{}, fmt.Errorf("read the backup: %w", err)
	}
	want := make([]byte, sha256.Size)
	if _, err := f.ReadAt(want, body); err != nil {
		return BackupInfo{}, fmt.Errorf("read the backup: %w", err)
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return BackupInfo{}, fmt.Errorf("%w: its contents don't fit the sum at its end", ErrBadBackup)
	}
	return info, f.Truncate(body)
}

// readLine reads byte by byte, so that what follows stays unread.
func readLine(r io.Reader) ([]byte, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < maxHeader; line = append(line, b[0]) {
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, fmt.Errorf("%w: it is cut", ErrBadBackup)
		}
		if b[0] == '\n' {
			return line, nil
		}
	}
	return nil, fmt.Errorf("%w: its description has no end", ErrBadBackup)
}
