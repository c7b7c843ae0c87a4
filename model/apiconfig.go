package model

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
)

// APIScheme is the protocol of the Kubernetes API server.
type APIScheme string

// The schemes of ONOS.
const (
	SchemeHTTP  APIScheme = "HTTP"
	SchemeHTTPS APIScheme = "HTTPS"
)

// APIConfig says where the Kubernetes API server is and how to sign in there.
type APIConfig struct {
	Meta
	Scheme    APIScheme  `json:"scheme"`
	IPAddress netip.Addr `json:"ipAddress"`
	Port      int32      `json:"port"`

	DatacenterID *string `json:"datacenterId,omitempty"`
	ClusterID    *string `json:"clusterId,omitempty"`

	// CACertData, ClientCertData and ClientKeyData are PEM in base64.
	CACertData     *string `json:"caCertData,omitempty"`
	ClientCertData *string `json:"clientCertData,omitempty"`
	ClientKeyData  Secret  `json:"clientKeyData,omitempty"`
	Token          Secret  `json:"token,omitempty"`

	// ServiceFQDN is the name at which switches find the controller, unless there
	// is a ControllerIP.
	ServiceFQDN *string `json:"serviceFqdn,omitempty"`
	// APIServerFQDN is the name of the API server. It was resolved when the
	// configuration was written: IPAddress and Port are what came of it.
	APIServerFQDN *string    `json:"apiServerFqdn,omitempty"`
	ControllerIP  netip.Addr `json:"controllerIp"` // invalid: none
}

// APIConfigKey is the key of the only API configuration. All have this one, so
// that the store itself lets no second one in.
const APIConfigKey = "kubernetes"

// Kind implements Object.
func (*APIConfig) Kind() Kind { return KindAPIConfig }

// Key implements Object.
func (*APIConfig) Key() string { return APIConfigKey }

// Endpoint is the URL of the API server, as ONOS writes it.
func (c *APIConfig) Endpoint() string {
	return fmt.Sprintf("%s://%s:%d", strings.ToLower(string(c.Scheme)), c.IPAddress, c.Port)
}

// Secret is a text that no log and no message shows. Only JSON holds it, because
// the store keeps objects as JSON.
type Secret string

const hidden = "(hidden)"

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return s.String() }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
