package rest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

func longNetwork() string {
	return strings.Replace(networkBody("big"), `"name":"big"`, `"name":"`+strings.Repeat("x", 1<<20)+`"`, 1)
}

// TestLongAnswersNeedRoom: without room a long answer is refused, a short one isn't.
func TestLongAnswersNeedRoom(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Limits.Wait = 20 * time.Millisecond })
	l.must(201, "POST", networksPath, networkBody("n"))
	l.must(201, "POST", networksPath, longNetwork())
	o := l.server.outbox
	if !o.room.TryAcquire(o.limit) {
		t.Fatal("the outbox is not empty")
	}
	if r := l.must(503, "GET", networksPath, ""); r.header.Get("Retry-After") == "" || !bytes.Contains(r.body, []byte(`"code":503`)) {
		t.Errorf("%v %s", r.header, r.body)
	}
	l.must(200, "GET", networksPath+"/n", "")
	o.room.Release(o.limit)
	l.must(200, "GET", networksPath, "")
	if !o.waiting.TryAcquire(o.waitingLimit) {
		t.Error("an answer that was refused still waits")
	}
	l.must(200, "GET", networksPath, "")
}

// TestFewAnswersWaitForRoom: those that wait hold memory too.
func TestFewAnswersWaitForRoom(t *testing.T) {
	o := newOutbox(1<<20, time.Minute)
	const length = 200 << 10
	leaveAll, ok := o.enter(context.Background(), 2<<20) // takes all that there is
	if !ok {
		t.Fatal("an answer that is larger than the empty outbox is refused")
	}
	first := make(chan bool)
	go func() {
		leave, ok := o.enter(context.Background(), length)
		if ok {
			leave()
		}
		first <- ok
	}()
	eventually(t, "one waits", func() bool {
		free := o.waiting.TryAcquire(o.waitingLimit)
		if free {
			o.waiting.Release(o.waitingLimit)
		}
		return !free
	})
	if _, ok := o.enter(context.Background(), length); ok {
		t.Error("a second one got room")
	}
	leaveAll()
	if !<-first {
		t.Error("the one that waited got no room")
	}
	if !o.room.TryAcquire(o.limit) || !o.waiting.TryAcquire(o.waitingLimit) {
		t.Error("not all room was given back")
	}
}

// TestAnswersThatAreNotTakenHoldRoom: and give it back when their client goes.
func TestAnswersThatAreNotTakenHoldRoom(t *testing.T) {
	l := newLab(t)
	l.must(201, "POST", networksPath, longNetwork())
	o := l.server.outbox
	empty := func() bool {
		all := o.room.TryAcquire(o.limit)
		if all {
			o.room.Release(o.limit)
		}
		return all
	}
	c := l.slow(strings.Repeat("GET "+networksPath+" HTTP/1.1\r\nHost: x\r\nAuthorization: "+adminAuth+"\r\n\r\n", 50))
	eventually(t, "an answer holds room", func() bool { return !empty() })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the room is given back", empty)
}
