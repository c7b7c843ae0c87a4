package store

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kvnet/model"
)

// The errors that callers act on. They are wrapped with what was being done;
// test for them with errors.Is.
var (
	// ErrExists says that an object of that key is stored already.
	ErrExists = errors.New("an object of that name exists already")
	// ErrNotFound says that no object of that key is stored.
	ErrNotFound = errors.New("there is no object of that name")
	// ErrInUse says that another object still needs the one to be deleted.
	ErrInUse = errors.New("the object is still in use")
	// ErrConflict says that somebody else wrote first: read again and repeat.
	ErrConflict = errors.New("the object was changed by somebody else meanwhile")
	// ErrTooLarge says that the write is over a limit of the storage engine.
	// Nothing of it is stored.
	ErrTooLarge = errors.New("the write is larger than the store accepts")
	// ErrNoSpace says that the disk or the store's quota is full. Nothing of
	// the write is stored; deletes still work.
	ErrNoSpace = errors.New("the store has no space left")
	// ErrUnavailable says that the store didn't answer in time or has stopped.
	ErrUnavailable = errors.New("the store is not available")
	// ErrNoQuorum is an ErrUnavailable: this server isn't in touch with the majority
	// of the members, and nothing was tried.
	ErrNoQuorum = fmt.Errorf("%w: the majority of the members is not in touch", ErrUnavailable)
	// ErrNotLeader says that the term of the writer is not in force (any more).
	ErrNotLeader = errors.New("this server does not lead under that term")
	// ErrNewer says that a value was written by a newer version of kvnet in a
	// form that this version can't read.
	ErrNewer = errors.New("the value was written by a newer version of kvnet")
	// ErrDamaged says that something in the store or its directory can't be
	// read.
	ErrDamaged = errors.New("the stored data is damaged")
	// ErrLocked says that another process uses the data directory.
	ErrLocked = errors.New("the data directory is in use by another process")
)

// BridgeTakenError says that a node names as its integration or tunnel bridge
// one that is another node's.
type BridgeTakenError struct {
	Bridge model.DeviceID
	Host   string // the node that has it
}

// Error implements error.
func (e *BridgeTakenError) Error() string {
	return fmt.Sprintf("bridge %s belongs to node %q already", e.Bridge, e.Host)
}

// existsError says that an object that must be absent is there: ErrExists for
// whoever wants to create it, ErrConflict for whoever saw it absent.
type existsError struct{}

func (existsError) Error() string { return ErrExists.Error() }

func (existsError) Is(target error) bool { return target == ErrExists || target == ErrConflict }

// classify turns an error of the engine into one of this package's, keeping the
// cause.
func classify(err error) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: the quota is used up: %w", ErrNoSpace, err)
	case errors.Is(err, rpctypes.ErrRequestTooLarge), errors.Is(err, rpctypes.ErrTooManyOps):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	switch code(err) {
	case codes.ResourceExhausted:
		// The transport's own limit on the length of a message.
		if !errors.Is(err, rpctypes.ErrTooManyRequests) {
			return fmt.Errorf("%w: %w", ErrTooLarge, err)
		}
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.Unknown,
		codes.PermissionDenied, codes.Unauthenticated, codes.Internal, codes.FailedPrecondition:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case codes.DataLoss:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

func code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}
