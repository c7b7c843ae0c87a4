package rest

// The descriptions of the POSTs beside ONOS's GETs in nodeinit.go. They share
// their handlers with the GETs.

// @ID      postInitNode
// @Summary Bootstrap a node again
// @Tags    node
// @Produce json
// @Param   hostname path string true "hostname of the node" extensions(x-example=worker-1)
// @Success 200 {object} object "the node goes through its bootstrap again"
// @Failure 400,404,409,507
// @x-added true
// @Router  /onos/kubevirtnode/node/init/{hostname} [post]

// @ID      postInitAllNodes
// @Summary Bootstrap all nodes again
// @Tags    node
// @Produce json
// @Success 200 {object} object "the nodes go through their bootstrap again"
// @Failure 409,507
// @x-added true
// @Router  /onos/kubevirtnode/node/init/all [post]

// @ID      postInitIncompleteNodes
// @Summary Bootstrap all nodes that aren't COMPLETE again
// @Tags    node
// @Produce json
// @Success 200 {object} object "these nodes go through their bootstrap again"
// @Failure 409,507
// @x-added true
// @Router  /onos/kubevirtnode/node/init/incomplete [post]

// @ID         postSyncRules
// @Summary    Make the rules of all COMPLETE nodes again
// @Tags       node
// @Produce    json
// @x-optional ["failed"]
// @Success    200 {object} object{failed=[]string} "an empty object; or failed, if nodes did not become COMPLETE in time"
// @Failure    409,507
// @x-added    true
// @Router     /onos/kubevirtnode/node/sync/rules [post]
