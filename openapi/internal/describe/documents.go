package describe

import (
	"strings"

	"github.com/go-openapi/spec"
)

// document is one of the descriptions.
type document struct {
	file        string
	title       string
	basePath    string
	description string
}

// documents are those that kvnet serves. A call that ONOS has stands in the one of
// its base path, all others in the last one.
var documents = []document{
	{
		file: "kubevirtnetworking.json", title: "KubeVirt Networking API", basePath: "/onos/kubevirtnetworking",
		description: "The REST API of ONOS's KubeVirt Networking. Writing routers, floating IPs, load balancers, security groups " +
			"and ports, which kvnet adds under the same paths, is described in the kvnet API.\n\n" + signIn,
	},
	{
		file: "kubevirtnode.json", title: "KubeVirt Node API", basePath: "/onos/kubevirtnode",
		description: "The REST API of ONOS's KubeVirt Node. Reading nodes, which kvnet adds under the same paths, is described in the kvnet API.\n\n" + signIn,
	},
	{
		file: "kvnet.json", title: "kvnet API", basePath: "/",
		description: "The calls that kvnet adds to ONOS's: writing what ONOS's apps only read, and looking at what kvnet is doing.\n\n" + signIn,
	},
}

// signIn is what every reader has to know first.
const signIn = "- **Authorize** takes a name and a password for *Try it out*; they are forgotten when the page is left. " +
	"Reading needs the role viewer, POST, PUT and DELETE need the role admin.\n" +
	"- A refused call has a body of the form `{\"code\":404,\"message\":\"what is wrong\"}`. A status of 500 is a fault in kvnet.\n" +
	"- Each path also answers OPTIONS, and HEAD where it answers GET."

// documentOf picks the document of a call, and the call's path in it.
func documentOf(path string, added bool) (document, string) {
	for _, d := range documents {
		if rest, ok := strings.CutPrefix(path, d.basePath); ok && strings.HasPrefix(rest, "/") && !added {
			return d, rest
		}
	}
	return documents[len(documents)-1], path
}

// empty is the document without calls.
func (d document) empty() *spec.Swagger {
	out := &spec.Swagger{}
	out.Swagger = "2.0"
	out.Info = &spec.Info{InfoProps: spec.InfoProps{Title: d.title, Version: "1.0", Description: d.description}}
	out.BasePath = d.basePath
	out.Consumes = []string{jsonType}
	out.Produces = []string{jsonType}
	out.Paths = &spec.Paths{Paths: map[string]spec.PathItem{}}
	out.Definitions = spec.Definitions{}
	out.SecurityDefinitions = spec.SecurityDefinitions{basic: &spec.SecurityScheme{
		SecuritySchemeProps: spec.SecuritySchemeProps{Type: "basic", Description: "As shipped, onos with the password rocks may do everything, and guest with guest may read."},
	}}
	out.Security = []map[string][]string{{basic: {}}}
	return out
}

const (
	basic    = "basic"
	jsonType = "application/json"
)

// tags says what the groups of calls are, in the order in which they are shown.
var tags = []spec.Tag{
	spec.NewTag("network", "Networks that VMs are in", nil),
	spec.NewTag("router", "Routers between networks, and to the outside", nil),
	spec.NewTag("floating-ip", "Outside addresses that lead to a VM or a load balancer", nil),
	spec.NewTag("loadbalancer", "Virtual addresses that several VMs serve", nil),
	spec.NewTag("security-group", "What packets VMs may send and get", nil),
	spec.NewTag("port", "Network interfaces of VMs", nil),
	spec.NewTag("api/mm5/v1", "What a MEC orchestrator asks for", nil),
	spec.NewTag("node", "Hosts with their bridges", nil),
	spec.NewTag("api-config", "How to reach the Kubernetes API", nil),
	spec.NewTag("inspection", "What kvnet is doing", nil),
	spec.NewTag("cluster", "Members of the cluster", nil),
	spec.NewTag("adoption", "Moving from another controller", nil),
	spec.NewTag("health", "Whether this server works", nil),
	spec.NewTag("docs", "These pages", nil),
}
