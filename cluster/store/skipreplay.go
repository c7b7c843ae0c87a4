package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// skipReplay notes in etcd's log that the database contains the log up to where it
// does, as etcd itself notes with a snapshot, now and then. After its start etcd goes
// through the log from the last such note on. Changes of addresses that it meets there
// don't change the database again, but it dials by them: members that have moved for
// the second time would be looked for where they were after the first.
func skipReplay(c Config) (err error) {
	defer func() {
		if p := recover(); p != nil { // how etcd tells of some damages
			err = fmt.Errorf("%v", p)
		}
	}()
	var applied walpb.Snapshot
	db, err := bolt.Open(databasePath(c), 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	err = db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(schema.Meta.Name())
		if b == nil {
			return nil
		}
		index, term, members := b.Get(schema.MetaConsistentIndexKeyName), b.Get(schema.MetaTermKeyName), b.Get(schema.MetaConfStateName)
		if len(index) != 8 || len(term) != 8 || members == nil {
			return nil
		}
		applied.Index, applied.Term = new(binary.BigEndian.Uint64(index)), new(binary.BigEndian.Uint64(term))
		applied.ConfState = &raftpb.ConfState{}
		return json.Unmarshal(members, applied.ConfState)
	})
	if closed := db.Close(); err == nil {
		err = closed
	}
	if err != nil || applied.ConfState == nil {
		return err
	}
	dir := filepath.Join(engineDir(c), "member", "wal")
	noted, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		return err
	}
	last := &walpb.Snapshot{}
	if len(noted) > 0 {
		last = noted[len(noted)-1]
	}
	if last.GetIndex() >= applied.GetIndex() {
		return nil
	}
	w, err := wal.Open(zap.NewNop(), dir, last)
	if err != nil {
		return err
	}
	_, state, entries, err := w.ReadAll()
	// The log is sure to contain what it says is committed.
	if err == nil && applied.GetIndex() <= state.GetCommit() && hasEntry(entries, &applied) {
		err = w.SaveSnapshot(&applied)
	}
	if closed := w.Close(); err == nil {
		err = closed
	}
	return err
}

// hasEntry tells whether the entry at which a snapshot is taken is in the log.
func hasEntry(entries []*raftpb.Entry, at *walpb.Snapshot) bool {
	for _, e := range entries {
		if e.GetIndex() == at.GetIndex() {
			return e.GetTerm() == at.GetTerm()
		}
	}
	return false
}
