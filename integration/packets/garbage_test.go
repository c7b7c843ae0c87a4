package packets

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net"
	"testing"
	"time"

	"kvnet/integration/relay"
)

// A switch that sends garbage loses its connection, nothing else.
func TestGarbageEndsOnlyItsOwnConnection(t *testing.T) {
	w := newRestartWorld(t)
	before, began := w.rulesByBridge(), time.Now()
	traffic := w.startTraffic(vmA)
	mark := w.Relay.Mark()

	noise := make([]byte, 4096)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	noise[0] = 0xff // no version of OpenFlow
	hello := []byte{4, 0, 0, 8, 0, 0, 0, 1}
	kinds := map[string][]byte{
		"HTTP":                     []byte("GET / HTTP/1.1\r\nHost: kvnet\r\n\r\n"),
		"noise":                    noise,
		"hello of another version": {1, 0, 0, 8, 0, 0, 0, 1},
		"length below the header":  append(bytes.Clone(hello), 4, 10, 0, 3, 0, 0, 0, 2),
		"no handshake":             append(bytes.Clone(hello), 4, 10, 0, 16, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8),
		"short features reply":     append(bytes.Clone(hello), 4, 6, 0, 9, 0, 0, 0, 2, 1),
		"half a message":           append(bytes.Clone(hello), 4, 6, 0xff, 0xff, 0, 0, 0, 2),
	}
	t.Run("kinds", func(t *testing.T) {
		for name, garbage := range kinds {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				sendGarbage(t, w.Server.OpenFlow, garbage)
			})
		}
	})
	expectUntouched(t, before, w.rulesByBridge(), time.Since(began)-100*time.Millisecond)
	if again := w.Relay.Since(mark, func(f relay.Frame) bool { return f.Type == relay.Hello }); len(again) > 0 {
		t.Errorf("other switches connected anew:\n%s", relay.Describe(again))
	}
	traffic.expectNoLoss(t)
}

// sendGarbage connects, sends and waits until the server closes the connection.
func sendGarbage(t *testing.T, address string, garbage []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(garbage); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	for buffer := make([]byte, 4096); err == nil; {
		_, err = conn.Read(buffer)
	}
	var netError net.Error
	if errors.As(err, &netError) && netError.Timeout() {
		t.Error("still connected after 30 s")
	}
}
