package routerarp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kvnet/handlers/arp"
	"kvnet/model"
	"kvnet/model/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	gwSwitch = model.DPID(0xa1)
	patchNo  = 10
)

var (
	snatIP  = netip.MustParseAddr("172.16.0.100")
	peerIP  = netip.MustParseAddr("172.16.0.1")
	peerMAC = model.MAC{0x52, 0x54, 0, 0xaa, 0xbb, 1}
	newMAC  = model.MAC{0x52, 0x54, 0, 0xaa, 0xbb, 2}
)

// lab runs a Prober in a bubble of fake time against a state with one router.
type lab struct {
	t        *testing.T
	db       *state.DB
	prober   *Prober
	revision int64
	start    time.Time
	cancel   context.CancelFunc
	done     chan struct{}

	sent    []sent
	sendErr error
	learnt  []model.MAC
	// learn is what Learned does besides counting.
	learn    func(mac model.MAC) error
	learnCtx context.Context
}

type sent struct {
	at    time.Duration
	sw    model.DPID
	port  string
	frame string
}

func (l *lab) PacketOut(_ context.Context, sw model.DPID, port string, frame []byte) error {
	l.sent = append(l.sent, sent{time.Since(l.start), sw, port, string(frame)})
	return l.sendErr
}

func (l *lab) Learned(ctx context.Context, router string, ip netip.Addr, mac model.MAC) error {
	if router != "r1" || ip != peerIP {
		l.t.Errorf("learned for router %s, peer %s", router, ip)
	}
	l.learnt, l.learnCtx = append(l.learnt, mac), ctx
	return l.learn(mac)
}

// newLab starts the prober; the router is written, its switch isn't connected.
func newLab(t *testing.T) *lab {
	l := &lab{t: t, db: state.New(), start: time.Now()}
	l.learn = func(mac model.MAC) error { l.decide("gw1", mac); return nil }
	bridge := "ext"
	objects := []model.Object{
		&model.Node{Hostname: "gw1", Type: model.NodeGateway, IntegrationBridge: "of:00000000000000a1", GatewayBridgeName: &bridge},
		&model.Node{Hostname: "gw2", Type: model.NodeGateway, IntegrationBridge: "of:00000000000000a2", GatewayBridgeName: &bridge},
		&model.Router{Meta: model.Meta{Created: 1, Modified: 1}, Name: "r1", External: &model.External{IPText: snatIP.String(), NetworkID: "ext"}, Peer: &model.PeerRouter{IP: peerIP}},
		&model.RouterStatus{Name: "r1", Life: 1, Gateway: "gw1", PeerIP: peerIP},
	}
	if err := l.db.Replace(1, objects); err != nil {
		t.Fatal(err)
	}
	l.revision = 1
	l.prober = NewProber(ProberConfig{DB: l.db, Sender: l, Learner: l, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	l.lead()
	return l
}

func (l *lab) lead() {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel, l.done = cancel, make(chan struct{})
	go func() {
		defer close(l.done)
		if err := l.prober.Run(ctx); err != nil {
			l.t.Error(err)
		}
	}()
	synctest.Wait()
}

func (l *lab) end() {
	l.cancel()
	<-l.done
}

func (l *lab) apply(e state.Event) {
	l.revision++
	if e.Object != nil {
		e.Object.Stored().Modified = l.revision
	}
	if err := l.db.Apply(l.revision, []state.Event{e}); err != nil {
		l.t.Error(err)
	}
}

// decide writes the router's status.
func (l *lab) decide(gateway string, mac model.MAC) {
	l.apply(state.Event{Kind: model.KindRouterStatus, Key: "r1", Object: &model.RouterStatus{Name: "r1", Life: 1, Gateway: gateway, PeerIP: peerIP, PeerMAC: mac}})
}

func (l *lab) connect(sw model.DPID) {
	l.db.SwitchConnected(model.Switch{DPID: sw}, []model.SwitchPort{{DPID: sw, Number: patchNo, Name: "int-to-ext"}})
	synctest.Wait()
}

// pass lets time pass and everything come to rest.
func (l *lab) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (l *lab) receive(sw model.DPID, port uint32, frame []byte) {
	l.prober.HandlePacketIn(sw, port, frame)
	synctest.Wait()
}

// reply is an ARP reply of the peer to the router's address.
func reply(mac model.MAC) []byte { return arpReply(mac, peerIP, snatIP) }

// arpReply makes a reply from a request, by changing operation and target.
func arpReply(mac model.MAC, from, to netip.Addr) []byte {
	b := arp.RequestFrame(mac, from, to)
	b[21] = byte(arp.Reply)
	return b
}

func (l *lab) wantTimes(want ...time.Duration) {
	l.t.Helper()
	var got []time.Duration
	for _, s := range l.sent {
		got = append(got, s.at)
	}
	if !slices.Equal(got, want) {
		l.t.Errorf("requests at %v, want %v", got, want)
	}
}

func (l *lab) wantLearnt(want ...model.MAC) {
	l.t.Helper()
	if !slices.Equal(l.learnt, want) {
		l.t.Errorf("learnt %v, want %v", l.learnt, want)
	}
}

const first = firstRequest

func TestAsksAtOnceThenAfter5sThenEach60sUntilTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		l.connect(gwSwitch)
		l.pass(130 * time.Second)
		l.wantTimes(first, first+5*time.Second, first+65*time.Second, first+125*time.Second)
		want := sent{first, gwSwitch, "int-to-ext", string(arp.RequestFrame(model.FirstExternalMAC, snatIP, peerIP))}
		if l.sent[0] != want {
			t.Errorf("sent %+v, want %+v", l.sent[0], want)
		}
		if n := len(l.sent[0].frame); n != 60 {
			t.Errorf("the frame has %d bytes", n)
		}
		l.receive(gwSwitch, patchNo, reply(peerMAC))
		l.wantLearnt(peerMAC)
		l.pass(time.Hour)
		if len(l.sent) != 4 {
			t.Errorf("asks on after the answer: %v", l.sent[4:])
		}
	})
}

func TestAsksOnlyWhenTheSwitchIsConnectedAndHasThePort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		l.pass(time.Minute)
		l.db.SwitchConnected(model.Switch{DPID: gwSwitch}, nil)
		l.pass(time.Minute)
		l.wantTimes()
		l.db.SwitchPortChanged(model.SwitchPort{DPID: gwSwitch, Number: patchNo, Name: "int-to-ext"})
		l.pass(time.Second)
		l.wantTimes(2*time.Minute + first)
		l.db.SwitchDisconnected(gwSwitch, "test")
		l.pass(time.Hour)
		l.wantTimes(2*time.Minute + first)
		l.connect(gwSwitch)
		l.pass(6 * time.Second)
		back := time.Hour + 2*time.Minute + time.Second + first
		l.wantTimes(2*time.Minute+first, back, back+5*time.Second)
	})
}

func TestRequestsStop(t *testing.T) {
	for name, stop := range map[string]func(l *lab){
		"when the router is deleted (A-1)": func(l *lab) { l.apply(state.Event{Kind: model.KindRouter, Key: "r1"}) },
		"when the external network is detached": func(l *lab) {
			r := *l.db.Snapshot().Router("r1")
			r.External = nil
			l.apply(state.Event{Kind: model.KindRouter, Key: "r1", Object: &r})
		},
		"when the peer is taken away (A-3)": func(l *lab) {
			r := *l.db.Snapshot().Router("r1")
			r.Peer = nil
			l.apply(state.Event{Kind: model.KindRouter, Key: "r1", Object: &r})
		},
		"when the gateway is lost":            func(l *lab) { l.decide("", model.MAC{}) },
		"when the MAC is written by a client": func(l *lab) { l.decide("gw1", peerMAC) },
		"when the gateway node is deleted":    func(l *lab) { l.apply(state.Event{Kind: model.KindNode, Key: "gw1"}) },
		"when leadership ends (A-1)":          func(l *lab) { l.end() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				defer l.end()
				l.connect(gwSwitch)
				l.pass(time.Second)
				l.wantTimes(first)
				stop(l)
				synctest.Wait()
				l.receive(gwSwitch, patchNo, reply(peerMAC))
				l.pass(time.Hour)
				l.wantTimes(first)
				l.wantLearnt()
			})
		})
	}
}

func TestAChangedQuestionIsAskedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		l.connect(gwSwitch)
		l.connect(0xa2)
		l.pass(time.Second)
		l.decide("gw2", model.MAC{})
		l.pass(time.Second)
		l.wantTimes(first, time.Second+first)
		if l.sent[1].sw != 0xa2 {
			t.Errorf("asked on switch %s", l.sent[1].sw)
		}
		l.receive(gwSwitch, patchNo, reply(peerMAC))
		l.wantLearnt() // the old gateway is no longer asked
		l.receive(0xa2, patchNo, reply(peerMAC))
		l.wantLearnt(peerMAC)
	})
}

func TestThePeerInAVLANIsAskedWithItsTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		l.apply(state.Event{Kind: model.KindNetwork, Key: "ext", Object: &model.Network{ID: "ext", Type: model.NetworkVLAN, SegmentID: "100"}})
		l.connect(gwSwitch)
		l.pass(time.Second)
		if want := string(arp.Tagged(arp.RequestFrame(model.FirstExternalMAC, snatIP, peerIP), 100)); l.sent[0].frame != want {
			t.Errorf("asked %x, want %x", l.sent[0].frame, want)
		}
		l.receive(gwSwitch, patchNo, reply(peerMAC))
		l.receive(gwSwitch, patchNo, arp.Tagged(reply(peerMAC), 101))
		l.wantLearnt() // they speak of other networks
		l.receive(gwSwitch, patchNo, arp.Tagged(reply(peerMAC), 100))
		l.wantLearnt(peerMAC)
	})
}

func TestAGatewayAsksWithTheMACThatIsDecidedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		l.connect(gwSwitch)
		l.pass(time.Second)
		mac := model.MAC{0xfe, 0, 0, 0, 0, 3}
		l.apply(state.Event{Kind: model.KindNodeStatus, Key: "gw1", Object: &model.NodeStatus{Hostname: "gw1", State: model.NodeComplete, ExternalMAC: mac}})
		l.pass(time.Second)
		l.wantTimes(first, time.Second+first)
		if want := string(arp.RequestFrame(mac, snatIP, peerIP)); l.sent[1].frame != want {
			t.Errorf("asked %x, want %x", l.sent[1].frame, want)
		}
	})
}

func TestOnlyAnswersThatWereAskedForCount(t *testing.T) {
	broadcast := model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for name, c := range map[string]struct {
		sw    model.DPID
		port  uint32
		frame []byte
	}{
		"from another switch":           {0xa2, patchNo, reply(peerMAC)},
		"from another port":             {gwSwitch, 11, reply(peerMAC)},
		"from another address":          {gwSwitch, patchNo, arpReply(peerMAC, netip.MustParseAddr("172.16.0.2"), snatIP)},
		"to another address":            {gwSwitch, patchNo, arpReply(peerMAC, peerIP, netip.MustParseAddr("172.16.0.2"))},
		"a request":                     {gwSwitch, patchNo, arp.RequestFrame(peerMAC, peerIP, snatIP)},
		"with a tag":                    {gwSwitch, patchNo, arp.Tagged(reply(peerMAC), 100)},
		"with a broadcast MAC":          {gwSwitch, patchNo, reply(broadcast)},
		"with the MAC of zeros":         {gwSwitch, patchNo, reply(model.MAC{})},
		"cut off":                       {gwSwitch, patchNo, reply(peerMAC)[:40]},
		"a gratuitous ARP":              {gwSwitch, patchNo, arp.GratuitousFrame(peerMAC, peerIP)},
		"a gratuitous ARP of the SNAT ": {gwSwitch, patchNo, arp.GratuitousFrame(peerMAC, snatIP)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				defer l.end()
				l.connect(gwSwitch)
				l.pass(time.Second)
				l.receive(c.sw, c.port, c.frame)
				l.wantLearnt()
				l.wantTimes(first)
			})
		})
	}
	t.Run("before the first request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t)
			defer l.end()
			l.connect(gwSwitch)
			l.receive(gwSwitch, patchNo, reply(peerMAC))
			l.wantLearnt()
		})
	})
}

// known starts a lab whose peer's MAC is known.
func known(t *testing.T) *lab {
	l := newLab(t)
	l.decide("gw1", peerMAC)
	l.connect(gwSwitch)
	l.pass(time.Minute)
	l.wantTimes()
	return l
}

func TestAnotherMACIsVerifiedBeforeItIsBelieved(t *testing.T) {
	for name, frame := range map[string][]byte{
		"gratuitous reply (A-4)":   arp.GratuitousFrame(newMAC, peerIP),
		"gratuitous request (A-4)": arp.RequestFrame(newMAC, peerIP, peerIP),
		"unasked reply (A-2)":      reply(newMAC),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := known(t)
				defer l.end()
				l.receive(gwSwitch, patchNo, frame)
				l.wantLearnt()
				l.wantTimes(time.Minute)
				l.receive(gwSwitch, patchNo, reply(newMAC))
				l.wantLearnt(newMAC)
				// Later answers change nothing any more.
				l.receive(gwSwitch, patchNo, reply(newMAC))
				l.wantLearnt(newMAC)
			})
		})
	}
	t.Run("the first answer decides", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := known(t)
			defer l.end()
			l.receive(gwSwitch, patchNo, arp.GratuitousFrame(newMAC, peerIP))
			l.receive(gwSwitch, patchNo, reply(peerMAC))
			l.receive(gwSwitch, patchNo, reply(newMAC))
			l.wantLearnt()
		})
	})
	t.Run("a late answer is none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := known(t)
			defer l.end()
			l.receive(gwSwitch, patchNo, arp.GratuitousFrame(newMAC, peerIP))
			l.pass(verifyWindow + time.Millisecond)
			l.receive(gwSwitch, patchNo, reply(newMAC))
			l.wantLearnt()
		})
	})
	t.Run("the known MAC is no news", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := known(t)
			defer l.end()
			l.receive(gwSwitch, patchNo, arp.GratuitousFrame(peerMAC, peerIP))
			l.receive(gwSwitch, patchNo, reply(peerMAC))
			l.wantTimes()
		})
	})
}

func TestVerificationIsLimitedToOneRequestIn5s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := known(t)
		defer l.end()
		for range 190 {
			l.receive(gwSwitch, patchNo, arp.GratuitousFrame(newMAC, peerIP))
			l.pass(100 * time.Millisecond)
		}
		m := time.Minute
		l.wantTimes(m, m+5*time.Second, m+10*time.Second, m+15*time.Second)
	})
}

func TestAHintRightAfterARequestIsVerifiedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := known(t)
		defer l.end()
		l.receive(gwSwitch, patchNo, arp.GratuitousFrame(newMAC, peerIP))
		l.receive(gwSwitch, patchNo, reply(peerMAC)) // the old one still answers
		l.pass(time.Second)
		l.receive(gwSwitch, patchNo, arp.GratuitousFrame(newMAC, peerIP))
		l.pass(5 * time.Second)
		l.wantTimes(time.Minute, time.Minute+5*time.Second)
		l.receive(gwSwitch, patchNo, reply(newMAC))
		l.wantLearnt(newMAC)
	})
}

func TestOneResultIsStoredAtATimeAndGivenUpWithLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.connect(gwSwitch)
		l.pass(time.Second)
		var ctx context.Context
		l.learn = func(model.MAC) error {
			ctx = l.learnCtx
			<-ctx.Done()
			return ctx.Err()
		}
		l.receive(gwSwitch, patchNo, reply(peerMAC))
		l.receive(gwSwitch, patchNo, reply(newMAC))
		l.wantLearnt(peerMAC)
		l.end()
		if ctx.Err() == nil {
			t.Error("the store's work goes on")
		}
	})
}

func TestPacketsOfAnEarlierLeadershipAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := known(t)
		l.end()
		a, err := arp.Parse(arp.GratuitousFrame(newMAC, peerIP))
		if err != nil {
			t.Fatal(err)
		}
		l.prober.queue <- packet{gwSwitch, patchNo, a}
		l.lead()
		defer l.end()
		l.pass(time.Minute)
		l.wantTimes()
	})
}

func TestAPeerThatComesUpIsAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		l.connect(gwSwitch)
		l.pass(20 * time.Second)
		l.receive(gwSwitch, patchNo, arp.GratuitousFrame(peerMAC, peerIP))
		l.wantTimes(first, first+5*time.Second, 20*time.Second)
		l.receive(gwSwitch, patchNo, reply(peerMAC))
		l.wantLearnt(peerMAC)
	})
}

func TestAMACThatCannotBeStoredIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		l.connect(gwSwitch)
		l.pass(first + 6*time.Second)
		l.learn = func(model.MAC) error { return errors.New("no space") }
		l.receive(gwSwitch, patchNo, reply(peerMAC))
		l.pass(learnAgain)
		l.wantTimes(first, first+5*time.Second, first+11*time.Second)
		l.learn = func(mac model.MAC) error { l.decide("gw1", mac); return nil }
		l.receive(gwSwitch, patchNo, reply(peerMAC))
		l.wantLearnt(peerMAC, peerMAC)
	})
}

func TestARequestThatCannotBeSentIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		l.sendErr = errors.New("queue full")
		l.connect(gwSwitch)
		l.pass(6 * time.Second)
		l.wantTimes(first, first+5*time.Second)
	})
}

func TestNothingIsAskedBeforeTheStateIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.end()
		db := state.New()
		l.db, l.revision = db, 1
		l.prober = NewProber(ProberConfig{DB: db, Sender: l, Learner: l})
		bridge := "ext"
		l.apply(state.Event{Kind: model.KindNode, Key: "gw1", Object: &model.Node{Hostname: "gw1", IntegrationBridge: "of:00000000000000a1", GatewayBridgeName: &bridge}})
		r := &model.Router{Meta: model.Meta{Created: 1}, Name: "r1", External: &model.External{IPText: snatIP.String()}, Peer: &model.PeerRouter{IP: peerIP}}
		l.apply(state.Event{Kind: model.KindRouter, Key: "r1", Object: r})
		st := &model.RouterStatus{Name: "r1", Life: 1, Gateway: "gw1", PeerIP: peerIP}
		l.apply(state.Event{Kind: model.KindRouterStatus, Key: "r1", Object: st})
		l.lead()
		defer l.end()
		l.connect(gwSwitch)
		l.pass(time.Minute)
		l.wantTimes()
		if err := db.Replace(9, []model.Object{db.Snapshot().Node("gw1"), r, st}); err != nil {
			t.Fatal(err)
		}
		l.pass(time.Second)
		l.wantTimes(time.Minute + first)
	})
}

func TestPacketsNeverBlockAndOverflowIsCounted(t *testing.T) {
	db := state.New()
	p := NewProber(ProberConfig{DB: db, QueueLen: 2})
	p.HandlePacketIn(gwSwitch, patchNo, reply(peerMAC))
	if len(p.queue) != 0 {
		t.Error("packets are queued though nobody leads")
	}
	p.running.Store(true) // but nobody reads
	for range 5 {
		p.HandlePacketIn(gwSwitch, patchNo, reply(peerMAC))
		p.HandlePacketIn(gwSwitch, patchNo, []byte("no ARP"))
	}
	if len(p.queue) != 2 || p.Dropped() != 3 {
		t.Errorf("%d queued, %d dropped", len(p.queue), p.Dropped())
	}
	p.drain()
	if len(p.queue) != 0 {
		t.Error("not drained")
	}
}
