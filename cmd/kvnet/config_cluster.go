package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"kvnet/cluster/gossip"
)

// maxExpected is the largest number of servers that may found a cluster. More
// members than seven make writes slower and nothing safer.
const maxExpected = 7

// clustered tells whether this server is to found or join a cluster with others.
func (c *config) clustered() bool { return len(c.join) > 0 || c.bootstrapExpect > 1 }

// checkCluster refuses settings of the cluster that can't work, in words.
func (c *config) checkCluster() error {
	switch {
	case c.bootstrapExpect < 0 || c.bootstrapExpect > maxExpected:
		return fmt.Errorf("--bootstrap-expect: a cluster is founded by 1 to %d servers, not by %d", maxExpected, c.bootstrapExpect)
	case c.bootstrapExpect == 1 && len(c.join) > 0:
		return errors.New("--bootstrap-expect 1 founds a cluster at once, and --join looks for one: only one of them can be meant")
	case (c.storePeerCert == "") != (c.storePeerKey == "") || (c.storePeerCert == "") != (c.storePeerCA == ""):
		return errors.New("--store-peer-cert, --store-peer-key and --store-peer-ca need each other")
	}
	for _, e := range c.storeEndpoints {
		if err := checkURL(e); err != nil {
			return fmt.Errorf("--store-endpoints: %w", err)
		}
	}
	for _, a := range c.join {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("--join: %q is no address of the form HOST:PORT: %w", a, err)
		}
	}
	if c.advertise != "" {
		if _, _, err := net.SplitHostPort(c.advertise); err == nil {
			return fmt.Errorf("--advertise: %q has a port; only the host is wanted", c.advertise)
		}
	}
	if c.gossipKeyFile == "" {
		if err := gossip.CheckKey(c.gossipListen, nil); err != nil {
			return fmt.Errorf("--gossip-listen: %w (--gossip-key-file)", err)
		}
	}
	if len(c.storeEndpoints) == 0 && !onLoopback(c.storeListen) && c.gossipKeyFile == "" && c.storePeerCert == "" {
		return fmt.Errorf("--store-listen: other machines reach %s, so the servers have to prove who they are: give them a key with --gossip-key-file, or certificates with --store-peer-cert, --store-peer-key and --store-peer-ca", c.storeListen)
	}
	if c.clustered() && len(c.storeEndpoints) == 0 && onLoopback(c.storeListen) && !onLoopback(c.gossipListen) {
		return fmt.Errorf("--store-listen: other servers can't reach %s; give an address that they reach, as with --gossip-listen", c.storeListen)
	}
	return nil
}

// onLoopback tells whether an address of the form HOST:PORT is reached from this
// machine only.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// unspecified tells whether a host stands for all addresses of this machine.
func unspecified(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "" || err == nil && a.IsUnspecified()
}

// reachable is a listening address as others reach it: with host in place of one
// that stands for all addresses.
func reachable(listen, host string) string {
	h, port, err := net.SplitHostPort(listen)
	if err != nil || !unspecified(h) {
		return listen
	}
	return net.JoinHostPort(host, port)
}

// gossipAdvertise is the address by which other servers reach this one's gossip,
// as far as the settings tell.
func (c *config) gossipAdvertise() string {
	host, port, _ := net.SplitHostPort(c.gossipListen)
	if c.advertise != "" {
		host = c.advertise
	}
	return net.JoinHostPort(host, port)
}

// storeAdvertise is the address by which other servers reach the store: the
// advertised host with the store's port, or the store's own address, or, where
// that stands for all addresses, host. Empty: the store's own address.
func (c *config) storeAdvertise(host string) string {
	h, port, _ := net.SplitHostPort(c.storeListen)
	switch {
	case c.advertise != "":
		return net.JoinHostPort(c.advertise, port)
	case unspecified(h) && host != "":
		return net.JoinHostPort(host, port)
	}
	return ""
}
