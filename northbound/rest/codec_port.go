package rest

import (
	"strconv"
	"strings"

	"kvnet/model"
)

// portJSON is ONOS's form of a port.
type portJSON struct {
	VMName    *string `json:"vmName" validate:"required" example:"vm1"`
	NetworkID *string `json:"networkId" validate:"required" example:"net-1" minLength:"1"`
	MAC       *string `json:"macAddress" validate:"required,mac48" example:"02:00:00:00:00:11" format:"mac"`
	IP        *string `json:"ipAddress,omitempty" validate:"omitempty,host" example:"192.0.2.10" format:"ip"`
	// The integration bridge of the worker that runs the VM.
	DeviceID *string `json:"deviceId,omitempty" validate:"omitempty,device" example:"of:0000000000000001" format:"device"`
	// An unsigned number of 32 bits in decimal, hexadecimal (0x) or octal (0).
	PortNumber *string `json:"portNumber,omitempty" example:"17" format:"number"`
	// The ids of the security groups that hold for the port.
	SecurityGroups []string `json:"securityGroups" example:"sg-1"`
} // @name KubevirtPort

func (*portJSON) entity() string { return "KubevirtPort" }

func (p *portJSON) check(f *faults) {
	if *p.NetworkID == "" {
		f.add("networkId is empty: Kubevirt port network ID cannot be null")
	}
	if _, ok := portNumber(p.PortNumber); !ok {
		f.add("portNumber %q is no unsigned number of 32 bits in decimal, hexadecimal (0x…) or octal (0…)", shown(*p.PortNumber))
	}
}

// portNumber reads a port number as Java's Long.decode does; ok is false if s is
// none. An absent one is nil.
func portNumber(s *string) (n *uint32, ok bool) {
	if s == nil {
		return nil, true
	}
	digits, base := *s, 10
	switch {
	case strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X"):
		digits, base = digits[2:], 16
	case strings.HasPrefix(digits, "0") && len(digits) > 1:
		digits, base = digits[1:], 8
	}
	x, err := strconv.ParseUint(digits, base, 32)
	return ptr(uint32(x)), err == nil
}

func (p *portJSON) key() string { return mac(p.MAC).String() }

func (p *portJSON) apply(model.Object) model.Object {
	number, _ := portNumber(p.PortNumber)
	return &model.Port{
		VMName:         *p.VMName,
		NetworkID:      *p.NetworkID,
		MAC:            mac(p.MAC),
		IP:             address(p.IP),
		DeviceID:       model.DeviceID(text(p.DeviceID)),
		PortNumber:     number,
		SecurityGroups: sortedSet(p.SecurityGroups),
	}
}

func (p *portJSON) warnings() []string {
	if w := bridgeWarning("deviceId", p.DeviceID); w != "" {
		return []string{w}
	}
	return nil
}

func encodePort(p *model.Port) *portJSON {
	out := &portJSON{
		VMName:         &p.VMName,
		NetworkID:      &p.NetworkID,
		MAC:            upperMAC(p.MAC),
		IP:             addressText(p.IP),
		DeviceID:       textOrNil(string(p.DeviceID)),
		SecurityGroups: p.SecurityGroups,
	}
	if p.PortNumber != nil {
		out.PortNumber = ptr(strconv.FormatUint(uint64(*p.PortNumber), 10))
	}
	if out.SecurityGroups == nil {
		out.SecurityGroups = []string{} // ONOS always writes the list
	}
	return out
}
