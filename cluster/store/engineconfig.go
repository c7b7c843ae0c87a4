package store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// engineDir is the engine's own directory.
func engineDir(c Config) string { return filepath.Join(c.Dir, "etcd") }

// engineConfig is the configuration of the embedded member. members is how many
// its data says that there are.
func engineConfig(c Config, id Identity, members int) (*embed.Config, error) {
	cfg := embed.NewConfig()
	listen, err := peerURL(c.scheme(), c.Listen)
	if err != nil {
		return nil, fmt.Errorf("the store's address to listen on: %w", err)
	}
	own := c.Advertise
	if planned, ok := id.Cluster.Members[c.Name]; ok && members == 0 {
		own = planned // the others have been told this one
	}
	advertise, err := peerURL(c.scheme(), own)
	if err != nil {
		return nil, fmt.Errorf("the store's address for other members: %w", err)
	}
	cfg.Name = engineName(c.Name)
	cfg.Dir = engineDir(c)
	cfg.ListenPeerUrls = []url.URL{listen}
	cfg.AdvertisePeerUrls = []url.URL{advertise}
	// There is no port for clients: the only client is in this process.
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, nil
	cfg.EnableGRPCGateway = false
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	if len(id.Cluster.Members) > 0 {
		cfg.InitialCluster = initialCluster(c.scheme(), id.Cluster.Members)
	}
	if id.Cluster.ID != "" {
		// It goes into etcd's own ids of the cluster and of its members, so that
		// members of different clusters never listen to each other.
		cfg.InitialClusterToken = id.Cluster.ID
	}
	if id.Cluster.Joining {
		cfg.ClusterState = embed.ClusterStateFlagExisting
	}
	// The timers are read only here. A server that others can join has those of a
	// cluster while it is alone, so that nothing is to be changed when they come.
	if members > 1 || len(id.Cluster.Members) > 1 || !c.onLoopback() {
		cfg.TickMs, cfg.ElectionMs = uint(c.Heartbeat.Milliseconds()), uint(c.Election.Milliseconds())
	} else {
		cfg.TickMs, cfg.ElectionMs = uint(aloneHeartbeat.Milliseconds()), uint(aloneElection.Milliseconds())
	}
	// The first election needs no full timeout: after a start nobody leads yet.
	cfg.InitialElectionTickAdvance = true
	// A member that comes back from a partition must not depose the leader.
	cfg.PreVote = true
	// A change of members that would cost the quorum is refused.
	cfg.StrictReconfigCheck = true
	cfg.MaxLearners = maxLearners
	cfg.AutoCompactionMode = embed.CompactorModePeriodic
	cfg.AutoCompactionRetention = compactAfter
	cfg.QuotaBackendBytes = c.Quota + c.tuning.headroom
	cfg.MaxTxnOps = uint(c.tuning.maxOps) + 1 // the fence's
	cfg.MaxRequestBytes = maxRequest
	cfg.ForceNewCluster = c.tuning.forceNew
	if c.tuning.catchUp > 0 {
		cfg.SnapshotCatchUpEntries = c.tuning.catchUp
	}
	if c.secure() {
		if err := peerTLS(c, cfg); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// peerTLS makes members show each other certificates of the cluster's own CA.
func peerTLS(c Config, cfg *embed.Config) error {
	if _, err := tls.LoadX509KeyPair(c.PeerCertFile, c.PeerKeyFile); err != nil {
		return fmt.Errorf("read the certificate for other members: %w", err)
	}
	cfg.PeerTLSInfo = transport.TLSInfo{
		CertFile: c.PeerCertFile, KeyFile: c.PeerKeyFile, TrustedCAFile: c.PeerCAFile,
		ClientCertAuth: true,
		// A member that dials must have a certificate of the CA. That its
		// address is one of those in the certificate would prove nothing more,
		// and fails behind address translation.
		SkipClientSANVerify: true,
		MinVersion:          tls.VersionTLS12,
	}
	if _, err := cfg.PeerTLSInfo.ServerConfig(); err != nil {
		return fmt.Errorf("read the CA certificates for other members: %w", err)
	}
	return nil
}

// initialCluster is etcd's form of a list of members.
func initialCluster(scheme string, members map[string]string) string {
	var list []string
	for name, addr := range members {
		list = append(list, engineName(name)+"="+scheme+"://"+addr)
	}
	return strings.Join(list, ",")
}

// engineName makes a name one that etcd's lists of members can hold: "=" and ","
// have a meaning there.
func engineName(name string) string { return url.QueryEscape(name) }

// memberName reverses engineName.
func memberName(name string) string {
	if n, err := url.QueryUnescape(name); err == nil {
		return n
	}
	return name
}

func peerURL(scheme, addr string) (url.URL, error) {
	u, err := url.Parse(scheme + "://" + addr)
	if err != nil || u.Host != addr || u.Port() == "" {
		return url.URL{}, fmt.Errorf("%q is not of the form host:port", addr)
	}
	return *u, nil
}

// addressOf is the address in a member's URL, as peerURL took it.
func addressOf(peerURLs []string) (string, error) {
	if len(peerURLs) == 0 {
		return "", errors.New("a member without an address")
	}
	u, err := url.Parse(peerURLs[0])
	if err != nil {
		return "", fmt.Errorf("the address of a member: %w", err)
	}
	return u.Host, nil
}
