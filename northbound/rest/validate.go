package rest

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"github.com/go-playground/validator/v10"

	"kvnet/model"
)

// The validations of kvnet, by the names that the tags of edge types use.
const (
	tagAddress = "address"
	tagHost    = "host"
	tagPrefix  = "prefix"
	tagCIDR    = "network"
	tagMAC     = "mac48"
	tagDevice  = "device"
	tagKey     = "key"
)

// maxKey is how many bytes the key of an object may have. Longer ones could not be
// asked for any more: a request line has its limits.
const maxKey = 4096

// validate checks the tags of edge types. It is safe for concurrent use.
var validate = newValidator()

func newValidator() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	})
	each := func(ok func(string) bool) validator.Func {
		return func(fl validator.FieldLevel) bool { return ok(fl.Field().String()) }
	}
	for tag, f := range map[string]validator.Func{
		tagAddress: each(func(s string) bool { _, err := parseAddress(s); return err == nil }),
		tagPrefix:  each(func(s string) bool { _, err := parsePrefix(s); return err == nil }),
		tagCIDR:    each(func(s string) bool { _, err := parsePrefix(s); return err == nil }),
		tagHost:    each(func(s string) bool { a, err := parseAddress(s); return err == nil && hostFault(a) == "" }),
		tagMAC:     each(func(s string) bool { m, err := model.ParseMAC(s); return err == nil && macFault(m) == "" }),
		tagKey:     each(func(s string) bool { return len(s) <= maxKey }),
		tagDevice:  each(func(s string) bool { return deviceIDFault(s) == "" }),
	} {
		if err := v.RegisterValidation(tag, f); err != nil {
			panic("northbound/rest: validation " + tag + ": " + err.Error())
		}
	}
	return v
}

// validateTags adds a sentence for each field of e that its tag refuses.
func validateTags(e edge, f *faults) {
	err := validate.Struct(e)
	var list validator.ValidationErrors
	if !errors.As(err, &list) {
		return
	}
	for _, fe := range list {
		_, path, _ := strings.Cut(fe.Namespace(), ".")
		f.add("%s", sentence(e.entity(), path, fe))
	}
}

// sentence names the field, its value and what is wrong with it. Where ONOS has
// an own text for the fault, that text is part of the sentence.
func sentence(entity, path string, fe validator.FieldError) string {
	value, _ := fe.Value().(string)
	if p, ok := fe.Value().(*string); ok && p != nil {
		value = *p
	}
	value = shown(value)
	switch fe.Tag() {
	case "required":
		return path + " is required in " + entity
	case "oneof":
		return path + " " + quoted(value) + " is none of " + strings.Join(strings.Fields(fe.Param()), ", ")
	case tagKey:
		return fmt.Sprintf("%s has %d bytes, of at most %d", path, valueLen(fe), maxKey)
	case tagHost:
		if a, err := parseAddress(value); err == nil {
			return path + " " + quoted(value) + " is " + hostFault(a) + ", which no host has"
		}
		return path + " is no IP address: Invalid IP address string: " + value
	case tagAddress:
		return path + " is no IP address: Invalid IP address string: " + value
	case tagPrefix:
		return path + ` is no IP prefix: Malformed IP prefix string: ` + value + `. Address must take form ` +
			`"x.x.x.x/y" or "xxxx:xxxx:xxxx:xxxx:xxxx:xxxx:xxxx:xxxx/y"`
	case tagCIDR:
		return path + " " + quoted(value) + " is no IP prefix of the form address/length"
	case tagMAC:
		if m, err := model.ParseMAC(value); err == nil {
			return path + " " + quoted(value) + " is " + macFault(m) + ", which no interface has"
		}
		return path + " " + quoted(value) + " is no MAC address: Specified MAC Address must contain 12 hex digits" +
			" separated pairwise by :'s."
	case tagDevice:
		return path + " " + quoted(value) + " is no device id: " + deviceIDFault(value)
	}
	return path + " " + quoted(value) + " breaks the rule " + fe.Tag() + " " + fe.Param()
}

// macFault says why no interface has the address m; empty: one may.
func macFault(m model.MAC) string {
	switch {
	case m.IsZero():
		return "the zero MAC address"
	case m == model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}:
		return "the broadcast address"
	}
	return ""
}

// hostFault says why no host has the address a; empty: one may.
func hostFault(a netip.Addr) string {
	switch {
	case a.IsUnspecified():
		return "the unspecified address"
	case a.IsMulticast():
		return "the address of a group"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the broadcast address"
	}
	return ""
}

// valueLen is the length of a text that was refused.
func valueLen(fe validator.FieldError) int {
	switch v := fe.Value().(type) {
	case *string:
		return len(*v)
	case string:
		return len(v)
	}
	return 0
}

func quoted(s string) string { return `"` + s + `"` }

var (
	errNoAddress = errors.New("no IP address")
	errNoPrefix  = errors.New("no IP prefix")
)

// parseAddress reads an address as ONOS does: no zones, and an IPv4 address in
// the clothes of IPv6 is an IPv4 address.
func parseAddress(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, errNoAddress
	}
	return a.Unmap(), nil
}

// parsePrefix reads a prefix and clears its host bits.
func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, errNoPrefix
	}
	return p.Masked(), nil
}

// deviceIDFault says why s is no device id: in ONOS a URI reference of at most
// 1024 characters. It is empty if s is one.
func deviceIDFault(s string) string {
	if len([]rune(s)) > 1024 {
		return "it is longer than 1024 characters"
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return "a % is not followed by two hexadecimal digits"
			}
		case c <= ' ' || c == 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			return "it has a character that no URI may have"
		}
	}
	return ""
}

// bridgeWarning says that no switch will ever have the device id: one is "of:" and
// the 16 hexadecimal digits of a datapath id. It is empty for an absent id.
func bridgeWarning(field string, id *string) string {
	if _, ok := model.DeviceID(text(id)).DPID(); ok || text(id) == "" {
		return ""
	}
	return fmt.Sprintf("%s %q names no switch: it is not of: and 16 hexadecimal digits", field, shown(*id))
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// address is the model's form of a valid text; the zero address for nil.
func address(s *string) netip.Addr {
	if s == nil {
		return netip.Addr{}
	}
	a, _ := parseAddress(*s)
	return a
}

// prefix is the model's form of a valid text; the zero prefix for nil.
func prefix(s *string) netip.Prefix {
	if s == nil {
		return netip.Prefix{}
	}
	p, _ := parsePrefix(*s)
	return p
}

// mac is the model's form of a valid text; the zero address for nil.
func mac(s *string) model.MAC {
	if s == nil {
		return model.MAC{}
	}
	m, _ := model.ParseMAC(*s)
	return m
}

// text is the value of s, "" for nil.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
