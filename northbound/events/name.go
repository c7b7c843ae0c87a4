package events

// Name is the name of an event.
type Name string

// The events of ONOS's kubevirt apps that kvnet's objects can have.
const (
	NetworkCreated Name = "KUBEVIRT_NETWORK_CREATED"
	NetworkUpdated Name = "KUBEVIRT_NETWORK_UPDATED"
	NetworkRemoved Name = "KUBEVIRT_NETWORK_REMOVED"

	PortCreated              Name = "KUBEVIRT_PORT_CREATED"
	PortUpdated              Name = "KUBEVIRT_PORT_UPDATED"
	PortRemoved              Name = "KUBEVIRT_PORT_REMOVED"
	PortSecurityGroupAdded   Name = "KUBEVIRT_PORT_SECURITY_GROUP_ADDED"
	PortSecurityGroupRemoved Name = "KUBEVIRT_PORT_SECURITY_GROUP_REMOVED"
	PortDeviceAdded          Name = "KUBEVIRT_PORT_DEVICE_ADDED"

	RouterCreated                  Name = "KUBEVIRT_ROUTER_CREATED"
	RouterUpdated                  Name = "KUBEVIRT_ROUTER_UPDATED"
	RouterRemoved                  Name = "KUBEVIRT_ROUTER_REMOVED"
	PeerRouterMACRetrieved         Name = "KUBEVIRT_PEER_ROUTER_MAC_RETRIEVED"
	RouterExternalNetworkAttached  Name = "KUBEVIRT_ROUTER_EXTERNAL_NETWORK_ATTACHED"
	RouterExternalNetworkDetached  Name = "KUBEVIRT_ROUTER_EXTERNAL_NETWORK_DETACHED"
	RouterInternalNetworksAttached Name = "KUBEVIRT_ROUTER_INTERNAL_NETWORKS_ATTACHED"
	RouterInternalNetworksDetached Name = "KUBEVIRT_ROUTER_INTERNAL_NETWORKS_DETACHED"
	GatewayNodeAttached            Name = "KUBEVIRT_GATEWAY_NODE_ATTACHED"
	GatewayNodeDetached            Name = "KUBEVIRT_GATEWAY_NODE_DETACHED"
	GatewayNodeChanged             Name = "KUBEVIRT_GATEWAY_NODE_CHANGED"
	SNATStatusDisabled             Name = "KUBEVIRT_SNAT_STATUS_DISABLED"

	FloatingIPCreated         Name = "KUBEVIRT_FLOATING_IP_CREATED"
	FloatingIPUpdated         Name = "KUBEVIRT_FLOATING_IP_UPDATED"
	FloatingIPRemoved         Name = "KUBEVIRT_FLOATING_IP_REMOVED"
	FloatingIPAssociated      Name = "KUBEVIRT_FLOATING_IP_ASSOCIATED"
	FloatingIPDisassociated   Name = "KUBEVIRT_FLOATING_IP_DISASSOCIATED"
	FloatingIPLBAssociated    Name = "KUBEVIRT_FLOATING_IP_LB_ASSOCIATED"
	FloatingIPLBDisassociated Name = "KUBEVIRT_FLOATING_IP_LB_DISASSOCIATED"

	SecurityGroupCreated     Name = "KUBEVIRT_SECURITY_GROUP_CREATED"
	SecurityGroupRemoved     Name = "KUBEVIRT_SECURITY_GROUP_REMOVED"
	SecurityGroupRuleCreated Name = "KUBEVIRT_SECURITY_GROUP_RULE_CREATED"
	SecurityGroupRuleRemoved Name = "KUBEVIRT_SECURITY_GROUP_RULE_REMOVED"

	LoadBalancerCreated       Name = "KUBEVIRT_LOAD_BALANCER_CREATED"
	LoadBalancerUpdated       Name = "KUBEVIRT_LOAD_BALANCER_UPDATED"
	LoadBalancerRemoved       Name = "KUBEVIRT_LOAD_BALANCER_REMOVED"
	LoadBalancerMemberAdded   Name = "KUBEVIRT_LOAD_BALANCER_MEMBER_ADDED"
	LoadBalancerMemberRemoved Name = "KUBEVIRT_LOAD_BALANCER_MEMBER_REMOVED"

	NodeCreated    Name = "KUBEVIRT_NODE_CREATED"
	NodeUpdated    Name = "KUBEVIRT_NODE_UPDATED"
	NodeRemoved    Name = "KUBEVIRT_NODE_REMOVED"
	NodeComplete   Name = "KUBEVIRT_NODE_COMPLETE"
	NodeIncomplete Name = "KUBEVIRT_NODE_INCOMPLETE"

	APIConfigCreated Name = "KUBEVIRT_API_CONFIG_CREATED"
	APIConfigUpdated Name = "KUBEVIRT_API_CONFIG_UPDATED"
	APIConfigRemoved Name = "KUBEVIRT_API_CONFIG_REMOVED"
)

// SecurityGroupUpdated is kvnet's own: ONOS has no event for a group of which
// anything but the set of rule ids changes.
const SecurityGroupUpdated Name = "KUBEVIRT_SECURITY_GROUP_UPDATED"
