// Package state holds the snapshot of everything that kvnet knows: what clients
// want, what the leader has decided and what the switches show, in typed,
// indexed, immutable tables.
//
// Writers are few: the store's watch (wanted and decided objects) and the
// OpenFlow server (observed objects). Readers take a Snapshot, which never
// changes, or a Subscription, which hands out changes with the snapshot after
// them.
package state
