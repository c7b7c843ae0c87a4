package openapi

import _ "embed" // the descriptions

// Description is the description of the calls of one context path.
type Description struct {
	// Key is the context path without its first slash, by which clients ask for
	// the description.
	Key string
	// Title names the description.
	Title string
	// JSON is the document.
	JSON []byte
}

var (
	//go:embed kubevirtnetworking.json
	networking []byte
	//go:embed kubevirtnode.json
	node []byte
	//go:embed kvnet.json
	kvnet []byte
)

// Descriptions lists the descriptions: ONOS's two apps, and what kvnet adds to
// them.
func Descriptions() []Description {
	return []Description{
		{Key: "onos/kubevirtnetworking", Title: "KubeVirt Networking API", JSON: networking},
		{Key: "onos/kubevirtnode", Title: "KubeVirt Node API", JSON: node},
		{Key: "kvnet/v1", Title: "kvnet API", JSON: kvnet},
	}
}
