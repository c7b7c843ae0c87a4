package netns

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of SIOCETHTOOL (linux/ethtool.h).
const (
	ethtoolSetTxChecksum = 0x17
	ethtoolSetTSO        = 0x1f
	ethtoolSetGSO        = 0x24
)

// DisableOffloads turns off what a real network card does for outgoing packets:
// checksums, TSO and GSO. The userspace datapath of Open vSwitch hands packets on
// as they are, so a checksum left to hardware that isn't there stays wrong.
func (n *NS) DisableOffloads(iface string) error {
	return n.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open socket: %w", err)
		}
		defer func() { _ = unix.Close(fd) }()
		for _, command := range []uint32{ethtoolSetTxChecksum, ethtoolSetTSO, ethtoolSetGSO} {
			if err := ethtoolSet(fd, iface, command, 0); err != nil {
				return fmt.Errorf("turn off offload %#x of %s in %s: %w", command, iface, n.Name, err)
			}
		}
		return nil
	})
}

func ethtoolSet(fd int, iface string, command, value uint32) error {
	arg := struct{ command, value uint32 }{command, value}
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // struct ifreq is longer than its pointer
	}
	if copy(request.name[:unix.IFNAMSIZ-1], iface) < len(iface) {
		return fmt.Errorf("name %q is too long for an interface", iface)
	}
	request.data = unsafe.Pointer(&arg)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}
