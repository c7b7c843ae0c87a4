package rest

// The descriptions of those calls in mm5.go that share a handler.

// @ID      mm5ListNetworks
// @Summary All networks
// @Tags    api/mm5/v1
// @Produce json
// @Success 200 {object} object{networks=[]networkJSON} "the networks"
// @Router  /onos/kubevirtnetworking/api/mm5/v1/network [get]

// @ID          mm5CreateNetwork
// @Summary     Acknowledge a new network
// @Description The call is answered and nothing is changed, as in ONOS. A body is not read; it may be left out.
// @Tags        api/mm5/v1
// @Accept      json
// @Produce     json
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/network [post]

// @ID          mm5UpdateNetwork
// @Summary     Acknowledge a changed network
// @Description The call is answered and nothing is changed, as in ONOS. A body is not read; it may be left out.
// @Tags        api/mm5/v1
// @Accept      json
// @Produce     json
// @Param       networkName path string true "name of the network" extensions(x-example=example)
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/network/{networkName} [put]

// @ID          mm5DeleteNetwork
// @Summary     Acknowledge a deleted network
// @Description The call is answered and nothing is changed, as in ONOS.
// @Tags        api/mm5/v1
// @Produce     json
// @Param       networkName path string true "name of the network" extensions(x-example=example)
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/network/{networkName} [delete]

// @ID      mm5ListInstances
// @Summary All VMs that have ports
// @Tags    api/mm5/v1
// @Produce json
// @Success 200 {object} object{instances=[]instanceJSON} "the VMs that have ports"
// @Router  /onos/kubevirtnetworking/api/mm5/v1/instance [get]

// @ID          mm5CreateInstance
// @Summary     Acknowledge a new VM
// @Description The call is answered and nothing is changed, as in ONOS. A body is not read; it may be left out.
// @Tags        api/mm5/v1
// @Accept      json
// @Produce     json
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/instance [post]

// @ID          mm5UpdateInstance
// @Summary     Acknowledge a changed VM
// @Description The call is answered and nothing is changed, as in ONOS. A body is not read; it may be left out.
// @Tags        api/mm5/v1
// @Accept      json
// @Produce     json
// @Param       instanceName path string true "name of the VM" extensions(x-example=example)
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/instance/{instanceName} [put]

// @ID          mm5DeleteInstance
// @Summary     Acknowledge a deleted VM
// @Description The call is answered and nothing is changed, as in ONOS.
// @Tags        api/mm5/v1
// @Produce     json
// @Param       instanceName path string true "name of the VM" extensions(x-example=example)
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/instance/{instanceName} [delete]

// @ID      mm5ListRouters
// @Summary All routers
// @Tags    api/mm5/v1
// @Produce json
// @Success 200 {object} object{virtualRouters=[]routerJSON} "the routers"
// @Router  /onos/kubevirtnetworking/api/mm5/v1/vr [get]

// @ID          mm5CreateRouter
// @Summary     Acknowledge a new router
// @Description The call is answered and nothing is changed, as in ONOS. A body is not read; it may be left out.
// @Tags        api/mm5/v1
// @Accept      json
// @Produce     json
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/vr [post]

// @ID          mm5UpdateRouter
// @Summary     Acknowledge a changed router
// @Description The call is answered and nothing is changed, as in ONOS. A body is not read; it may be left out.
// @Tags        api/mm5/v1
// @Accept      json
// @Produce     json
// @Param       vrName path string true "name of the router" extensions(x-example=example)
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/vr/{vrName} [put]

// @ID          mm5DeleteRouter
// @Summary     Acknowledge a deleted router
// @Description The call is answered and nothing is changed, as in ONOS.
// @Tags        api/mm5/v1
// @Produce     json
// @Param       vrName path string true "name of the router" extensions(x-example=example)
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/vr/{vrName} [delete]

// @ID      mm5ListFloatingIPs
// @Summary All floating IPs
// @Tags    api/mm5/v1
// @Produce json
// @Success 200 {object} object{floatingIps=[]floatingIPJSON} "the floating IPs"
// @Router  /onos/kubevirtnetworking/api/mm5/v1/fip [get]

// @ID          mm5CreateFloatingIP
// @Summary     Acknowledge a new floating IP
// @Description The call is answered and nothing is changed, as in ONOS. A body is not read; it may be left out.
// @Tags        api/mm5/v1
// @Accept      json
// @Produce     json
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/fip [post]

// @ID          mm5UpdateFloatingIP
// @Summary     Acknowledge a changed floating IP
// @Description The call is answered and nothing is changed, as in ONOS. A body is not read; it may be left out.
// @Tags        api/mm5/v1
// @Accept      json
// @Produce     json
// @Param       fipName path string true "name of the floating IP" extensions(x-example=example)
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/fip/{fipName} [put]

// @ID          mm5DeleteFloatingIP
// @Summary     Acknowledge a deleted floating IP
// @Description The call is answered and nothing is changed, as in ONOS.
// @Tags        api/mm5/v1
// @Produce     json
// @Param       fipName path string true "name of the floating IP" extensions(x-example=example)
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/fip/{fipName} [delete]

// @ID      mm5ListLoadBalancers
// @Summary All load balancers
// @Tags    api/mm5/v1
// @Produce json
// @Success 200 {object} object{loadBalancers=[]loadBalancerJSON} "the load balancers"
// @Router  /onos/kubevirtnetworking/api/mm5/v1/lb [get]

// @ID          mm5CreateLoadBalancer
// @Summary     Acknowledge a new load balancer
// @Description The call is answered and nothing is changed, as in ONOS. A body is not read; it may be left out.
// @Tags        api/mm5/v1
// @Accept      json
// @Produce     json
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/lb [post]

// @ID          mm5UpdateLoadBalancer
// @Summary     Acknowledge a changed load balancer
// @Description The call is answered and nothing is changed, as in ONOS. A body is not read; it may be left out.
// @Tags        api/mm5/v1
// @Accept      json
// @Produce     json
// @Param       lbName path string true "name of the load balancer" extensions(x-example=example)
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/lb/{lbName} [put]

// @ID          mm5DeleteLoadBalancer
// @Summary     Acknowledge a deleted load balancer
// @Description The call is answered and nothing is changed, as in ONOS.
// @Tags        api/mm5/v1
// @Produce     json
// @Param       lbName path string true "name of the load balancer" extensions(x-example=example)
// @Success     200 {object} object "acknowledged; nothing was changed"
// @Router      /onos/kubevirtnetworking/api/mm5/v1/lb/{lbName} [delete]

// @ID          mm5GetGatewayState
// @Summary     Can a gateway node serve?
// @Description The same as ONOS's PUT of this path, which reads only.
// @Tags        api/mm5/v1
// @Produce     json
// @Param       nodeName path string true "hostname of the node" extensions(x-example=gateway-1)
// @Success     200 {object} rest.gatewayState.nodeState "its state"
// @Failure     400
// @x-added     true
// @Router      /onos/kubevirtnetworking/api/mm5/v1/state/mer/{nodeName} [get]
