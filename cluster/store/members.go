package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kvnet/internal/pause"
)

// Member is a server that keeps a copy of the embedded store.
type Member struct {
	// ID is etcd's. A server that joins anew under the same name has another.
	ID      uint64
	Name    string
	Address string // host:port
	// Learner says that it receives everything but doesn't vote yet.
	Learner bool
	// Started says that it has been in touch once.
	Started bool
	// Leader says that etcd's leader runs on it. It has nothing to do with the
	// term.
	Leader bool
}

var (
	// ErrRemoved says that this server is no member of its cluster any more.
	ErrRemoved = errors.New("this server was removed from the cluster; it can join again as a new one, after its data directory has been emptied")
	// ErrNotEmbedded says that the operation is about members, and the store is
	// an external cluster, which has its own tools for that.
	ErrNotEmbedded = errors.New("the store is an external etcd cluster")
)

// membersPrefix is that of the names of members that were added and haven't
// started yet: etcd learns a member's name from the member itself.
const membersPrefix = prefix + "members/"

// memberTimeout is the deadline of a change of members whose context has none.
// etcd makes everybody wait until the members have been in touch for 5 s.
const memberTimeout = 30 * time.Second

// Members lists the members as this server knows them.
func (s *Store) Members(ctx context.Context) (members []Member, err error) {
	_, err = s.op(ctx, OpRead, "list the members", func(ctx context.Context) (int64, error) {
		members, err = s.members(ctx, clientv3.WithSerializable())
		return 0, err
	})
	return members, err
}

func (s *Store) members(ctx context.Context, opts ...clientv3.OpOption) ([]Member, error) {
	if s.engine == nil {
		return nil, ErrNotEmbedded
	}
	list, err := s.client.MemberList(ctx, opts...)
	if err != nil {
		return nil, classify(err)
	}
	resp, err := s.client.Get(ctx, membersPrefix, append(opts, clientv3.WithPrefix())...)
	if err != nil {
		return nil, classify(err)
	}
	names := map[string]string{}
	for _, kv := range resp.Kvs {
		var addr string
		if json.Unmarshal(kv.Value, &addr) == nil {
			names[addr] = lastSegment(string(kv.Key))
		}
	}
	leader := s.engine.etcd.Server.Lead()
	var out []Member
	for _, m := range list.Members {
		addr, err := addressOf(m.PeerURLs)
		if err != nil {
			return nil, err
		}
		x := Member{ID: m.ID, Name: memberName(m.Name), Address: addr, Learner: m.IsLearner, Started: m.Name != "", Leader: m.ID == leader}
		if m.Name == "" {
			x.Name = names[addr]
		}
		out = append(out, x)
	}
	slices.SortFunc(out, compareMembers)
	return out, nil
}

// AddLearner takes a server into the cluster and returns the plan with which it
// has to be started. It is sent everything that is stored, but has no vote
// before Promote. Repeating the call does no harm: it returns the plan anew.
func (s *Store) AddLearner(ctx context.Context, name, address string) (plan Cluster, err error) {
	err = s.changeMembers(ctx, fmt.Sprintf("add member %q at %s", name, address), func(ctx context.Context) (bool, error) {
		u, err := peerURL(s.c.scheme(), address)
		if name == "" || err != nil {
			return false, errors.Join(err, ErrInvalidMember)
		}
		members, err := s.members(ctx)
		if err != nil {
			return true, err
		}
		for _, m := range members {
			switch {
			case m.Name == name && m.Address == address:
				plan, err = s.planFor(ctx, members)
				return true, err
			case m.Name == name:
				return false, fmt.Errorf("%w: member %q has the address %s", ErrExists, name, m.Address)
			case m.Address == address:
				return false, fmt.Errorf("%w: member %q has that address", ErrExists, m.Name)
			}
		}
		// The name first: a member without a name can't be removed by it.
		value, err := json.Marshal(address)
		if err != nil {
			return false, err
		}
		if _, err := s.client.Txn(ctx).Then(clientv3.OpPut(membersPrefix+escape(name), string(value))).Commit(); err != nil {
			return true, classify(err)
		}
		if _, err := s.client.MemberAddAsLearner(ctx, []string{u.String()}); err != nil {
			return true, classify(err)
		}
		return true, errAgain // for the list of members as it is now
	})
	return plan, err
}

// ErrInvalidMember says that a member needs a name and an address host:port.
var ErrInvalidMember = errors.New("a member needs a name and an address of the form host:port")

// planFor is the plan of a server that is among members already.
func (s *Store) planFor(ctx context.Context, members []Member) (Cluster, error) {
	m, _, err := s.readMeta(ctx)
	if err != nil {
		return Cluster{}, err
	}
	p := Cluster{ID: m.ClusterID, Joining: true, Members: map[string]string{}}
	for _, x := range members {
		name := x.Name
		if name == "" {
			name = fmt.Sprintf("%x", x.ID)
		}
		p.Members[name] = x.Address
	}
	return p, nil
}

// Promote gives a learner its vote, once it has caught up. It waits for that
// until ctx ends. For a member that votes already it does nothing.
func (s *Store) Promote(ctx context.Context, name string) error {
	return s.changeMembers(ctx, fmt.Sprintf("give member %q a vote", name), func(ctx context.Context) (bool, error) {
		members, err := s.members(ctx)
		if err != nil {
			return true, err
		}
		i := slices.IndexFunc(members, func(m Member) bool { return m.Name == name })
		if i < 0 {
			return false, fmt.Errorf("%w: no member has it", ErrNotFound)
		}
		if !members[i].Learner {
			return false, nil
		}
		if _, err := s.client.MemberPromote(ctx, members[i].ID); err != nil {
			return true, classify(err)
		}
		return true, s.forgetName(ctx, name)
	})
}

// RemoveMember takes a server out of the cluster for good; its data is of no use
// any more. That nobody has the name is no error: it may be the second attempt.
// A removal that would cost the quorum is refused.
func (s *Store) RemoveMember(ctx context.Context, name string) error {
	doing := fmt.Sprintf("remove member %q", name)
	if h, ok := s.Health(); ok && !h.Quorum {
		return fmt.Errorf("%s: %w", doing, ErrNoQuorum)
	}
	return s.changeMembers(ctx, doing, func(ctx context.Context) (bool, error) {
		members, err := s.members(ctx)
		if err != nil {
			return true, err
		}
		i := slices.IndexFunc(members, func(m Member) bool { return m.Name == name })
		if i < 0 {
			return true, s.forgetName(ctx, name)
		}
		return s.remove(ctx, members, members[i])
	})
}

// remove takes one member out.
func (s *Store) remove(ctx context.Context, members []Member, m Member) (again bool, err error) {
	if len(members) == 1 {
		return false, errors.New("it is the only member")
	}
	if _, err := s.client.MemberRemove(ctx, m.ID); err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
		return true, classify(err)
	}
	return true, s.forgetName(ctx, m.Name)
}

// ReplaceMember removes a dead member, as Members returned it, and adds another
// in its place, which may have the same name and address. It returns the plan
// for the new one; the rest is as for AddLearner. Repeating it does no harm,
// because the dead one is known by its ID.
func (s *Store) ReplaceMember(ctx context.Context, dead Member, name, address string) (Cluster, error) {
	if name == "" {
		return Cluster{}, ErrInvalidMember
	}
	if _, err := peerURL(s.c.scheme(), address); err != nil {
		return Cluster{}, errors.Join(err, ErrInvalidMember)
	}
	doing := fmt.Sprintf("replace member %q", dead.Name)
	err := s.changeMembers(ctx, doing, func(ctx context.Context) (bool, error) {
		members, err := s.members(ctx)
		if err != nil {
			return true, err
		}
		if !slices.ContainsFunc(members, func(m Member) bool { return m.ID == dead.ID }) {
			return false, nil
		}
		return s.remove(ctx, members, dead)
	})
	if err != nil {
		return Cluster{}, err
	}
	return s.AddLearner(ctx, name, address)
}

func (s *Store) forgetName(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	_, err := s.client.Txn(ctx).Then(clientv3.OpDelete(membersPrefix + escape(name))).Commit()
	return classify(err)
}

// errAgain says that a step is done and the next one is to be looked for.
var errAgain = errors.New("not done yet")

// changeMembers repeats f until it is done or has failed for good. f tells
// whether trying again may help against its error.
func (s *Store) changeMembers(ctx context.Context, doing string, f func(context.Context) (again bool, err error)) error {
	ctx, cancel := deadline(ctx, memberTimeout)
	defer cancel()
	_, err := s.op(ctx, OpMember, doing, func(ctx context.Context) (int64, error) {
		if s.engine == nil {
			return 0, ErrNotEmbedded
		}
		var last error
		for {
			// One attempt must not use up the time of all.
			try, cancel := context.WithTimeout(ctx, s.c.OpTimeout)
			again, err := f(try)
			cancel()
			switch {
			case err == nil:
				return 0, nil
			case errors.Is(err, errAgain):
				continue
			case !again || !mayPass(err):
				return 0, err
			}
			last = err
			if !pause.For(ctx, 100*time.Millisecond) {
				return 0, fmt.Errorf("%w: %w", ErrUnavailable, last)
			}
		}
	})
	return err
}

// mayPass tells whether the reason for an error goes away by itself: members
// that have been in touch for too short a time, a learner that has not caught
// up, others that are on their way in, an election.
func mayPass(err error) bool {
	for _, e := range []error{
		rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrMemberLearnerNotReady,
		rpctypes.ErrTooManyLearners, rpctypes.ErrPeerURLExist, rpctypes.ErrMemberNotFound, ErrUnavailable,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Readdress notes for all members where one of them is that can't say so itself. It
// does nothing if that is noted already or there is no member of the name. addr is
// host:port.
func (s *Store) Readdress(ctx context.Context, name, addr string) error {
	if s.engine == nil {
		return nil
	}
	u, err := peerURL(s.c.scheme(), addr)
	if err != nil {
		return fmt.Errorf("the address of member %q: %w", name, err)
	}
	for _, m := range s.engine.etcd.Server.Cluster().Members() {
		if memberName(m.Name) != name || slices.Equal(m.PeerURLs, []string{u.String()}) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, s.c.OpTimeout)
		defer cancel()
		if _, err := s.client.MemberUpdate(ctx, uint64(m.ID), []string{u.String()}); err != nil {
			return fmt.Errorf("note the address of member %q: %w", name, classify(err))
		}
		s.log.Info("noted where another member has moved", "member", name, "to", u.Host, "before", m.PeerURLs)
	}
	return nil
}

// announceAddress tells the others where this member is now, if that isn't what
// they know. It ends when they do.
func (s *Store) announceAddress(ctx context.Context) {
	server := s.engine.etcd.Server
	want := s.engine.etcd.Config().AdvertisePeerUrls[0]
	if want.Port() == "0" {
		return // any free port: for one member alone
	}
	select {
	case <-ctx.Done():
		return
	case <-server.ReadyNotify():
	}
	own := server.MemberID()
	if m := server.Cluster().Member(own); m == nil || slices.Equal(m.PeerURLs, []string{want.String()}) {
		return
	}
	for wait := s.c.tuning.backoff; ; wait = min(2*wait, maxBackoff) {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, s.c.OpTimeout)
			defer cancel()
			list, err := s.client.MemberList(ctx)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(list.Members, func(m *pb.Member) bool { return m.ID == uint64(own) })
			if i < 0 || slices.Equal(list.Members[i].PeerURLs, []string{want.String()}) {
				return nil
			}
			_, err = s.client.MemberUpdate(ctx, uint64(own), []string{want.String()})
			if err == nil {
				s.log.Info("told the other members the new address", "address", want.Host, "before", list.Members[i].PeerURLs)
			}
			return err
		}()
		if err == nil || ctx.Err() != nil {
			return
		}
		if wait >= maxBackoff {
			s.log.Warn("could not tell the other members the address of this one; trying again", "address", want.Host, "err", err)
		}
		if !pause.For(ctx, wait) {
			return
		}
	}
}
