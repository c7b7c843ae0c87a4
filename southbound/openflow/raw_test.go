package openflow_test

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"kvnet/southbound/openflow/wire"
)

// raw is a connection on which a test plays the switch byte by byte.
type raw struct {
	t testing.TB
	net.Conn
	r *wire.Reader
}

func dial(t testing.TB, c *controller) *raw { return dialFrom(t, c, "127.0.0.1") }

func dialFrom(t testing.TB, c *controller, ip string) *raw {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: 10 * time.Second}
	conn, err := d.Dial("tcp", c.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &raw{t, conn, wire.NewReader(conn)}
}

// message makes a message with the right length.
func message(typ uint8, xid uint32, body ...byte) []byte {
	b := []byte{wire.Version, typ}
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(body)))
	b = binary.BigEndian.AppendUint32(b, xid)
	return append(b, body...)
}

func (r *raw) send(b ...[]byte) {
	r.t.Helper()
	for _, m := range b {
		if _, err := r.Write(m); err != nil {
			r.t.Fatalf("write to the server: %v", err)
		}
	}
}

// expect reads until a message of that type and returns its header and body.
func (r *raw) expect(typ uint8) (wire.Header, []byte) {
	r.t.Helper()
	for {
		h, m, err := r.r.Next()
		if err != nil {
			r.t.Fatalf("wait for a message of type %d: %v", typ, err)
		}
		if h.Type == typ {
			return h, append([]byte{}, m[8:]...)
		}
	}
}

// expectEnd reads until the server closes the connection.
func (r *raw) expectEnd() {
	r.t.Helper()
	for {
		_, _, err := r.r.Next()
		if err == nil {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			r.t.Fatal("the server doesn't close the connection")
		}
		return
	}
}

func hello() []byte { return message(wire.TypeHello, 1, 0, 1, 0, 8, 0, 0, 0, 0x10) }

// handshake plays switch 8 up to the answer with its ports (none).
func (r *raw) handshake() {
	r.t.Helper()
	r.send(hello())
	h, _ := r.expect(wire.TypeFeaturesRequest)
	r.send(featuresReply(h.XID, 8))
	h, _ = r.expect(wire.TypeMultipartRequest)
	r.send(message(wire.TypeMultipartReply, h.XID, 0, 13, 0, 0, 0, 0, 0, 0))
}

func featuresReply(xid uint32, dpid uint64) []byte {
	return message(wire.TypeFeaturesReply, xid, append(binary.BigEndian.AppendUint64(nil, dpid), make([]byte, 16)...)...)
}

// master plays switch 8 up to the confirmed role.
func (r *raw) master() {
	r.t.Helper()
	r.handshake()
	h, body := r.expect(wire.TypeRoleRequest)
	r.send(message(wire.TypeRoleReply, h.XID, body...))
}
