package rest

import "kvnet/model"

// apiConfigJSON is ONOS's form of the configuration of the Kubernetes API. The
// state is written and never read.
type apiConfigJSON struct {
	Scheme    *string `json:"scheme" validate:"required,oneof=HTTP HTTPS" example:"HTTPS"`
	IPAddress *string `json:"ipAddress" validate:"required,address" example:"192.0.2.250" format:"ip"`
	Port      *int32  `json:"port" validate:"required" example:"6443" minimum:"1" maximum:"65535"`
	// Written, never read.
	State        *string `json:"state" read:"-" readonly:"true" enums:"CONNECTED,DISCONNECTED" example:"DISCONNECTED"`
	DatacenterID *string `json:"datacenterId" example:"one" extensions:"x-nullable"` // null if unset, as in ONOS
	ClusterID    *string `json:"clusterId" example:"one" extensions:"x-nullable"`
	// HTTPS needs the three certificates and keys, unless a token takes the place of
	// the client's. They are base64 of PEM.
	CACertData     *string `json:"caCertData,omitempty" example:"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"`
	ClientCertData *string `json:"clientCertData,omitempty" example:"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"`
	// Read, never shown.
	ClientKeyData *string `json:"clientKeyData,omitempty" example:"LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t"`
	// Read, never shown.
	Token       *string `json:"token,omitempty" example:""`
	ServiceFQDN *string `json:"serviceFqdn,omitempty" example:"kubernetes.example.org"`
	// A name of the API server. It is looked up once, when the configuration is stored.
	APIServerFQDN *string `json:"apiServerFqdn,omitempty" example:""`
	ControllerIP  *string `json:"controllerIp,omitempty" validate:"omitempty,address" example:"192.0.2.251" format:"ip"`
} // @name KubevirtApiConfig

// apiDisconnected is the state of the connection to the Kubernetes API: nothing
// of kvnet connects to it yet.
const apiDisconnected = "DISCONNECTED"

func (*apiConfigJSON) entity() string { return "KubevirtApiConfig" }

func (a *apiConfigJSON) check(f *faults) {
	if *a.Port < 1 || *a.Port > 65535 {
		f.add("port %d is no port from 1 to 65535", *a.Port)
	}
	a.checkCredentials(f)
}

// checkCredentials wants what HTTPS needs: a client certificate with everything
// about it, or a token in place of one (row C9 of docs/deviations.md; ONOS wants
// the certificate in any case).
func (a *apiConfigJSON) checkCredentials(f *faults) {
	if model.APIScheme(*a.Scheme) != model.SchemeHTTPS {
		return
	}
	if text(a.Token) != "" && text(a.ClientCertData) == "" && text(a.ClientKeyData) == "" {
		return
	}
	for _, p := range []struct {
		name  string
		value *string
	}{{"caCertData", a.CACertData}, {"clientCertData", a.ClientCertData}, {"clientKeyData", a.ClientKeyData}} {
		switch {
		case p.value == nil:
			f.add("%s is required in %s for the scheme HTTPS, unless a token takes the place of the client certificate", p.name, a.entity())
		case *p.value == "":
			f.add("%s is empty: API Config %s cannot be null", p.name, p.name)
		}
	}
}

func (a *apiConfigJSON) key() string { return model.APIConfigKey }

func (a *apiConfigJSON) apply(model.Object) model.Object {
	return &model.APIConfig{
		Scheme:         model.APIScheme(*a.Scheme),
		IPAddress:      address(a.IPAddress),
		Port:           *a.Port,
		DatacenterID:   a.DatacenterID,
		ClusterID:      a.ClusterID,
		CACertData:     a.CACertData,
		ClientCertData: a.ClientCertData,
		ClientKeyData:  model.Secret(text(a.ClientKeyData)),
		Token:          model.Secret(text(a.Token)),
		ServiceFQDN:    a.ServiceFQDN,
		APIServerFQDN:  a.APIServerFQDN,
		ControllerIP:   address(a.ControllerIP),
	}
}

// encodeAPIConfig writes a configuration without its secrets: what clients see.
func encodeAPIConfig(c *model.APIConfig) *apiConfigJSON {
	return &apiConfigJSON{
		Scheme:         ptr(string(c.Scheme)),
		IPAddress:      addressText(c.IPAddress),
		Port:           &c.Port,
		State:          ptr(apiDisconnected),
		DatacenterID:   c.DatacenterID,
		ClusterID:      c.ClusterID,
		CACertData:     c.CACertData,
		ClientCertData: c.ClientCertData,
		ServiceFQDN:    c.ServiceFQDN,
		APIServerFQDN:  c.APIServerFQDN,
		ControllerIP:   addressText(c.ControllerIP),
	}
}
