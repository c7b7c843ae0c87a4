package wire

import (
	"fmt"
	"slices"
)

// Types and codes of errors that are told apart.
const (
	ErrorHelloFailed       uint16 = 0
	ErrorBadRequest        uint16 = 1
	ErrorRoleRequestFailed uint16 = 11
	ErrorExperimenter      uint16 = 0xffff

	CodeHelloIncompatible uint16 = 0
	CodeIsSlave           uint16 = 10
	CodeStale             uint16 = 0
)

// Error is an ERROR message.
type Error struct {
	XID        uint32
	Type, Code uint16
	// Experimenter is set if Type is ErrorExperimenter.
	Experimenter uint32
	// Data is the beginning of the message that was refused.
	Data []byte
}

// DecodeError decodes an ERROR.
func DecodeError(b []byte) (Error, error) {
	r, h, err := message(b, TypeError)
	if err != nil {
		return Error{}, fmt.Errorf("decode an error: %w", err)
	}
	e := Error{XID: h.XID, Type: r.u16(), Code: r.u16()}
	if e.Type == ErrorExperimenter {
		e.Experimenter = r.u32()
	}
	e.Data = slices.Clone(r.rest())
	if r.err != nil {
		return Error{}, fmt.Errorf("decode an error: %w", r.err)
	}
	return e, nil
}

// Text names type and code of e as the specification does.
func (e Error) Text() string {
	if e.Type == ErrorExperimenter {
		if n := int(e.Code) - 2300; e.Experimenter == ExperimenterONF && n >= 0 && n < len(bundleCodes) {
			return "OFPET_BUNDLE_FAILED/OFPBFC_" + bundleCodes[n]
		}
		return fmt.Sprintf("OFPET_EXPERIMENTER/0x%08x:%d", e.Experimenter, e.Code)
	}
	if int(e.Type) >= len(errorTypes) {
		return fmt.Sprintf("type %d/code %d", e.Type, e.Code)
	}
	t := errorTypes[e.Type]
	if int(e.Code) >= len(t.codes) {
		return fmt.Sprintf("OFPET_%s/code %d", t.name, e.Code)
	}
	return "OFPET_" + t.name + "/" + t.prefix + t.codes[e.Code]
}

// errorTypes are the types of errors with their codes (OpenFlow 1.3.5, section
// 7.4.4), both in the order of their numbers.
var errorTypes = []struct {
	name, prefix string
	codes        []string
}{
	{"HELLO_FAILED", "OFPHFC_", []string{"INCOMPATIBLE", "EPERM"}},
	{"BAD_REQUEST", "OFPBRC_", []string{"BAD_VERSION", "BAD_TYPE", "BAD_MULTIPART", "BAD_EXPERIMENTER", "BAD_EXP_TYPE", "EPERM", "BAD_LEN", "BUFFER_EMPTY", "BUFFER_UNKNOWN", "BAD_TABLE_ID", "IS_SLAVE", "BAD_PORT", "BAD_PACKET", "MULTIPART_BUFFER_OVERFLOW"}},
	{"BAD_ACTION", "OFPBAC_", []string{"BAD_TYPE", "BAD_LEN", "BAD_EXPERIMENTER", "BAD_EXP_TYPE", "BAD_OUT_PORT", "BAD_ARGUMENT", "EPERM", "TOO_MANY", "BAD_QUEUE", "BAD_OUT_GROUP", "MATCH_INCONSISTENT", "UNSUPPORTED_ORDER", "BAD_TAG", "BAD_SET_TYPE", "BAD_SET_LEN", "BAD_SET_ARGUMENT"}},
	{"BAD_INSTRUCTION", "OFPBIC_", []string{"UNKNOWN_INST", "UNSUP_INST", "BAD_TABLE_ID", "UNSUP_METADATA", "UNSUP_METADATA_MASK", "BAD_EXPERIMENTER", "BAD_EXP_TYPE", "BAD_LEN", "EPERM", "DUP_INST"}},
	{"BAD_MATCH", "OFPBMC_", []string{"BAD_TYPE", "BAD_LEN", "BAD_TAG", "BAD_DL_ADDR_MASK", "BAD_NW_ADDR_MASK", "BAD_WILDCARDS", "BAD_FIELD", "BAD_VALUE", "BAD_MASK", "BAD_PREREQ", "DUP_FIELD", "EPERM"}},
	{"FLOW_MOD_FAILED", "OFPFMFC_", []string{"UNKNOWN", "TABLE_FULL", "BAD_TABLE_ID", "OVERLAP", "EPERM", "BAD_TIMEOUT", "BAD_COMMAND", "BAD_FLAGS"}},
	{"GROUP_MOD_FAILED", "OFPGMFC_", []string{"GROUP_EXISTS", "INVALID_GROUP", "WEIGHT_UNSUPPORTED", "OUT_OF_GROUPS", "OUT_OF_BUCKETS", "CHAINING_UNSUPPORTED", "WATCH_UNSUPPORTED", "LOOP", "UNKNOWN_GROUP", "CHAINED_GROUP", "BAD_TYPE", "BAD_COMMAND", "BAD_BUCKET", "BAD_WATCH", "EPERM"}},
	{"PORT_MOD_FAILED", "OFPPMFC_", []string{"BAD_PORT", "BAD_HW_ADDR", "BAD_CONFIG", "BAD_ADVERTISE", "EPERM"}},
	{"TABLE_MOD_FAILED", "OFPTMFC_", []string{"BAD_TABLE", "BAD_CONFIG", "EPERM"}},
	{"QUEUE_OP_FAILED", "OFPQOFC_", []string{"BAD_PORT", "BAD_QUEUE", "EPERM"}},
	{"SWITCH_CONFIG_FAILED", "OFPSCFC_", []string{"BAD_FLAGS", "BAD_LEN", "EPERM"}},
	{"ROLE_REQUEST_FAILED", "OFPRRFC_", []string{"STALE", "UNSUP", "BAD_ROLE"}},
	{"METER_MOD_FAILED", "OFPMMFC_", []string{"UNKNOWN", "METER_EXISTS", "INVALID_METER", "UNKNOWN_METER", "BAD_COMMAND", "BAD_FLAGS", "BAD_RATE", "BAD_BURST", "BAD_BAND", "BAD_BAND_TYPE", "OUT_OF_METERS", "OUT_OF_BANDS"}},
	{"TABLE_FEATURES_FAILED", "OFPTFFC_", []string{"BAD_TABLE", "BAD_METADATA", "BAD_TYPE", "BAD_LEN", "BAD_ARGUMENT", "EPERM"}},
}

// bundleCodes are the codes of ONF's bundle errors from 2300 on.
var bundleCodes = []string{"UNKNOWN", "EPERM", "BAD_ID", "BUNDLE_EXIST", "BUNDLE_CLOSED", "OUT_OF_BUNDLES", "BAD_TYPE", "BAD_FLAGS", "MSG_BAD_LEN", "MSG_BAD_XID", "MSG_UNSUP", "MSG_CONFLICT", "MSG_TOO_MANY", "MSG_FAILED", "TIMEOUT", "BUNDLE_IN_PROGRESS"}
