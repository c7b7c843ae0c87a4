package gossip

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
)

// keySize is the size of the gossip key in bytes: AES-256.
const keySize = 32

// ReadKey reads the gossip key from a file with one line: base64 of 32 bytes.
// Its errors never show what the file holds.
func ReadKey(file string) ([]byte, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("read the gossip key: %w", err)
	}
	if st.Size() > 4096 {
		return nil, fmt.Errorf("gossip key file %s: it has %d bytes; one line with base64 of %d bytes is wanted", file, st.Size(), keySize)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the gossip key: %w", err)
	}
	line := strings.TrimSpace(string(b))
	switch {
	case line == "":
		return nil, fmt.Errorf("gossip key file %s: it is empty; one line with base64 of %d bytes is wanted", file, keySize)
	case strings.ContainsAny(line, "\r\n"):
		return nil, fmt.Errorf("gossip key file %s: it has more than one line", file)
	}
	key, err := base64.StdEncoding.DecodeString(line)
	if err != nil {
		return nil, fmt.Errorf("gossip key file %s: its line is not base64", file)
	}
	if len(key) != keySize {
		return nil, fmt.Errorf("gossip key file %s: it holds %d bytes instead of %d", file, len(key), keySize)
	}
	return key, nil
}

// CheckKey refuses to listen beyond loopback without a key: whoever can send to
// the gossip could remove members and found clusters.
func CheckKey(listen string, key []byte) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("gossip: %q is no address of the form HOST:PORT", listen)
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("gossip: %q must be an IP address and a port to listen on", listen)
	}
	if !addr.Unmap().IsLoopback() && len(key) == 0 {
		return errors.New("gossip on " + listen + " needs a key: without one it may listen on loopback only")
	}
	return nil
}
