package store

import (
	"fmt"
	"net/url"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kvnet/model"
)

const (
	prefix       = "/kvnet/v1/"
	statusPrefix = prefix + "status/"
	refPrefix    = prefix + "ref/"
	leaderKey    = prefix + "leader"
	metaKey      = prefix + "meta"
	fencePrefix  = prefix + "fence/"
	nudgeKey     = prefix + "nudge" // never exists
)

// class is the part of the layout that a key belongs to.
type class int

const (
	classOther  class = iota // of a version that we don't know
	classObject              // wanted or decided
	classRef
	classLeader
	classMeta
)

// segments maps the kinds that are stored to their place under prefix.
var segments = map[model.Kind]string{
	model.KindNetwork:       "network",
	model.KindRouter:        "router",
	model.KindPort:          "port",
	model.KindFloatingIP:    "floating-ip",
	model.KindLoadBalancer:  "loadbalancer",
	model.KindSecurityGroup: "security-group",
	model.KindNode:          "node",
	model.KindAPIConfig:     "api-config",

	model.KindRouterStatus:       "status/router",
	model.KindLoadBalancerStatus: "status/loadbalancer",
	model.KindNodeStatus:         "status/node",
}

// kinds is the inverse of segments.
var kinds = func() map[string]model.Kind {
	m := map[string]model.Kind{}
	for k, s := range segments {
		m[s] = k
	}
	return m
}()

// escape makes any text one segment of a key. It is reversible.
func escape(id string) string { return url.PathEscape(id) }

// unescape reverses escape. Text that escape doesn't write is refused, so that
// no object can have two keys.
func unescape(segment string) (string, error) {
	id, err := url.PathUnescape(segment)
	if err != nil {
		return "", err
	}
	if escape(id) != segment {
		return "", fmt.Errorf("%q is not the escaped form of %q", segment, id)
	}
	return id, nil
}

// objectKey is the key of an object. ok is false for kinds that are not stored.
func objectKey(kind model.Kind, id string) (key string, ok bool) {
	seg, ok := segments[kind]
	return prefix + seg + "/" + escape(id), ok
}

// parseKey tells what a key under prefix is about; kind and id are those of a
// classObject.
func parseKey(key string) (c class, kind model.Kind, id string, err error) {
	switch {
	case key == leaderKey:
		return classLeader, "", "", nil
	case key == metaKey:
		return classMeta, "", "", nil
	case strings.HasPrefix(key, refPrefix):
		return classRef, "", "", nil
	}
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return classOther, "", "", nil
	}
	i := strings.LastIndexByte(rest, '/')
	if i < 0 {
		return classOther, "", "", nil
	}
	kind, ok = kinds[rest[:i]]
	if !ok {
		return classOther, "", "", nil
	}
	if id, err = unescape(rest[i+1:]); err != nil {
		return classObject, kind, "", fmt.Errorf("read the name in key %q: %w: %w", key, ErrDamaged, err)
	}
	return classObject, kind, id, nil
}

// routerRefs is the prefix of the keys of the floating IPs of a router.
func routerRefs(router string) string {
	return refPrefix + "router/" + escape(router) + "/fip/"
}

func routerRef(router, floatingIP string) string {
	return routerRefs(router) + escape(floatingIP)
}

// bridgeRef is the key of the owner of a bridge. All spellings of one datapath
// id have one key.
func bridgeRef(id model.DeviceID) string {
	s := string(id)
	if d, ok := id.DPID(); ok {
		s = d.String()
	}
	return refPrefix + "bridge/" + escape(s)
}

// lastSegment is the unescaped last segment of a key, for messages.
func lastSegment(key string) string {
	seg := key[strings.LastIndexByte(key, '/')+1:]
	if id, err := unescape(seg); err == nil {
		return id
	}
	return seg
}

// prefixEnd is the end of the range of keys that begin with p.
func prefixEnd(p string) string { return clientv3.GetPrefixRangeEnd(p) }
