package store

import (
	"bytes"
	"encoding/json"
	"fmt"

	"kvnet/model"
)

// schemaVersion is the version of the form of the stored values. It grows when
// an older kvnet would misread a value, not when a field is added that it may
// ignore.
const schemaVersion = 1

// envelope is the stored form of a value.
type envelope struct {
	Version int             `json:"v"`
	Value   json.RawMessage `json:"o"`
}

// newObject makes an empty object of a stored kind, or nil.
func newObject(kind model.Kind) model.Object {
	switch kind {
	case model.KindNetwork:
		return &model.Network{}
	case model.KindRouter:
		return &model.Router{}
	case model.KindPort:
		return &model.Port{}
	case model.KindFloatingIP:
		return &model.FloatingIP{}
	case model.KindLoadBalancer:
		return &model.LoadBalancer{}
	case model.KindSecurityGroup:
		return &model.SecurityGroup{}
	case model.KindNode:
		return &model.Node{}
	case model.KindAPIConfig:
		return &model.APIConfig{}
	case model.KindRouterStatus:
		return &model.RouterStatus{}
	case model.KindLoadBalancerStatus:
		return &model.LoadBalancerStatus{}
	case model.KindNodeStatus:
		return &model.NodeStatus{}
	}
	return nil
}

// encodeObject writes obj in its stored form, in no more than max bytes. A value
// that could not be read again is refused here, because once it is stored every
// server stumbles over it.
func encodeObject(obj model.Object, max int) ([]byte, error) {
	b, err := encodeValue(obj)
	if err == nil && len(b) > max {
		err = fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(b), max)
	}
	if err == nil {
		_, err = decodeObject(obj.Kind(), obj.Key(), b)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s %q: %w", obj.Kind(), obj.Key(), err)
	}
	return b, nil
}

// decodeObject reads the stored form of the object of that kind and key.
func decodeObject(kind model.Kind, key string, b []byte) (model.Object, error) {
	obj := newObject(kind)
	if obj == nil {
		return nil, fmt.Errorf("objects of kind %q are not stored", kind)
	}
	if err := decodeValue(b, obj); err != nil {
		return nil, err
	}
	if obj.Key() != key {
		return nil, fmt.Errorf("%w: the value of %q says that it is %q", ErrDamaged, key, obj.Key())
	}
	return obj, nil
}

// encodeValue writes the envelope around v. Nothing is escaped for HTML, so that
// a value is hardly longer than the body that it came in.
func encodeValue(v any) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"v":%d,"o":`, schemaVersion)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	b.Truncate(b.Len() - 1) // the line feed that Encode adds
	b.WriteByte('}')
	return b.Bytes(), nil
}

func decodeValue(b []byte, v any) error {
	var e envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if e.Version > schemaVersion {
		return fmt.Errorf("%w: its version is %d, this kvnet knows %d", ErrNewer, e.Version, schemaVersion)
	}
	if e.Version < 1 || len(e.Value) == 0 {
		return fmt.Errorf("%w: the value has no version or no content", ErrDamaged)
	}
	if err := json.Unmarshal(e.Value, v); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}
