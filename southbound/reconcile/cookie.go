package reconcile

import (
	"crypto/sha256"
	"encoding/binary"

	"kvnet/southbound/flow"
	"kvnet/southbound/openflow"
)

// cookieOf is the cookie of a rule: kvnet's mark in the top 8 bits and 56 bits of
// a hash over table, priority and the match and instruction bytes as sent to this
// switch. So equal cookies mean equal rules, and a rule of the same match with
// other actions has another cookie.
func cookieOf(e openflow.EncodedRule) uint64 {
	var room [256]byte // enough for nearly all rules, and on the stack
	b := append(room[:0], e.Table)
	b = binary.BigEndian.AppendUint16(b, e.Priority)
	b = binary.BigEndian.AppendUint64(b, uint64(len(e.Match)))
	b = append(append(b, e.Match...), e.Instructions...)
	sum := sha256.Sum256(b)
	return flow.CookieMark | binary.BigEndian.Uint64(sum[:8])>>8
}

// own tells whether a cookie has kvnet's mark.
func own(cookie uint64) bool { return cookie&flow.CookieMask == flow.CookieMark }

// ownGroup tells whether a group id is one of kvnet's.
func ownGroup(id uint32) bool { return id >= flow.GroupIDMin && id <= flow.GroupIDMax }

// fromOriginal tells whether a cookie looks like one of ONOS: the application id
// (0x0001 to 0x0fff) in the upper 16 bits and a 32-bit hash below.
func fromOriginal(cookie uint64) bool {
	app := cookie >> 48
	return app >= 0x0001 && app <= 0x0fff && cookie>>32&0xffff == 0 && cookie&0xffffffff != 0
}
