package rest

// The descriptions of the calls in added.go. One handler serves a call of all
// kinds, so they can't stand there.

// @ID      listRouters
// @Summary All routers
// @Tags    router
// @Produce json
// @Success 200 {object} object{routers=[]routerJSON} "the routers, in no order that means something"
// @Router  /onos/kubevirtnetworking/router [get]

// @ID          createRouter
// @Summary     Create a router
// @Description What the router refers to (networks, a gateway node) need not exist yet. A gateway that is written counts at once if its node is COMPLETE; without one, kvnet elects one.
// @Tags        router
// @Accept      json
// @Produce     json
// @Param       router body routerJSON true "the router"
// @Success     201 "the router is stored"
// @Failure     409 "there is a router of this name, or others kept changing the same objects"
// @Failure     507
// @x-added     true
// @Router      /onos/kubevirtnetworking/router [post]

// @ID      getRouter
// @Summary One router
// @Tags    router
// @Produce json
// @Param   key path string true "name of the router" extensions(x-example=edge)
// @Success 200 {object} routerJSON "the router"
// @Failure 400,404
// @x-added true
// @Router  /onos/kubevirtnetworking/router/{key} [get]

// @ID          updateRouter
// @Summary     Replace a router
// @Description The body is the whole router; its name must be that of the path. A gateway that is left out stays as it is, and the peer's mac as long as its ip does.
// @Tags        router
// @Accept      json
// @Produce     json
// @Param       key path string true "name of the router" extensions(x-example=edge)
// @Param       router body routerJSON true "the router"
// @Success     200 "the router is replaced"
// @Failure     404,409,507
// @x-added     true
// @Router      /onos/kubevirtnetworking/router/{key} [put]

// @ID      deleteRouter
// @Summary Delete a router
// @Tags    router
// @Param   key path string true "name of the router" extensions(x-example=edge)
// @Success 204 "the router is deleted"
// @Failure 400,404,507
// @Failure 409 "a floating IP still uses the router, or others kept changing the same objects"
// @x-added true
// @Router  /onos/kubevirtnetworking/router/{key} [delete]

// @ID      listFloatingIPs
// @Summary All floating IPs
// @Tags    floating-ip
// @Produce json
// @Success 200 {object} object{floating-ips=[]floatingIPJSON} "the floating IPs, in no order that means something"
// @Router  /onos/kubevirtnetworking/floating-ip [get]

// @ID          createFloatingIP
// @Summary     Create a floating IP
// @Description What the floating IP refers to (a router, a network, a VM) need not exist yet.
// @Tags        floating-ip
// @Accept      json
// @Produce     json
// @Param       floatingIp body floatingIPJSON true "the floating IP"
// @Success     201 "the floating IP is stored"
// @Failure     409 "there is a floating IP of this id, or others kept changing the same objects"
// @Failure     507
// @x-added     true
// @Router      /onos/kubevirtnetworking/floating-ip [post]

// @ID      getFloatingIP
// @Summary One floating IP
// @Tags    floating-ip
// @Produce json
// @Param   key path string true "id of the floating IP" extensions(x-example=fip-1)
// @Success 200 {object} floatingIPJSON "the floating IP"
// @Failure 400,404
// @x-added true
// @Router  /onos/kubevirtnetworking/floating-ip/{key} [get]

// @ID          updateFloatingIP
// @Summary     Replace a floating IP
// @Description The body is the whole floating IP; its id must be that of the path.
// @Tags        floating-ip
// @Accept      json
// @Produce     json
// @Param       key path string true "id of the floating IP" extensions(x-example=fip-1)
// @Param       floatingIp body floatingIPJSON true "the floating IP"
// @Success     200 "the floating IP is replaced"
// @Failure     404,409,507
// @x-added     true
// @Router      /onos/kubevirtnetworking/floating-ip/{key} [put]

// @ID      deleteFloatingIP
// @Summary Delete a floating IP
// @Tags    floating-ip
// @Param   key path string true "id of the floating IP" extensions(x-example=fip-1)
// @Success 204 "the floating IP is deleted"
// @Failure 400,404,409,507
// @x-added true
// @Router  /onos/kubevirtnetworking/floating-ip/{key} [delete]

// @ID      listLoadBalancers
// @Summary All load balancers
// @Tags    loadbalancer
// @Produce json
// @Success 200 {object} object{loadBalancers=[]loadBalancerJSON} "the load balancers, in no order that means something"
// @Router  /onos/kubevirtnetworking/loadbalancer [get]

// @ID          createLoadBalancer
// @Summary     Create a load balancer
// @Description The network need not exist yet. A rule with a protocol that cannot be balanced is stored, and a Warning header of the answer says so.
// @Tags        loadbalancer
// @Accept      json
// @Produce     json
// @Param       loadbalancer body loadBalancerJSON true "the load balancer"
// @Success     201 "the load balancer is stored"
// @Failure     409 "there is a load balancer of this name, or others kept changing the same objects"
// @Failure     507
// @x-added     true
// @Router      /onos/kubevirtnetworking/loadbalancer [post]

// @ID      getLoadBalancer
// @Summary One load balancer
// @Tags    loadbalancer
// @Produce json
// @Param   key path string true "name of the load balancer" extensions(x-example=web)
// @Success 200 {object} loadBalancerJSON "the load balancer"
// @Failure 400,404
// @x-added true
// @Router  /onos/kubevirtnetworking/loadbalancer/{key} [get]

// @ID          updateLoadBalancer
// @Summary     Replace a load balancer
// @Description The body is the whole load balancer; its name must be that of the path.
// @Tags        loadbalancer
// @Accept      json
// @Produce     json
// @Param       key path string true "name of the load balancer" extensions(x-example=web)
// @Param       loadbalancer body loadBalancerJSON true "the load balancer"
// @Success     200 "the load balancer is replaced"
// @Failure     404,409,507
// @x-added     true
// @Router      /onos/kubevirtnetworking/loadbalancer/{key} [put]

// @ID      deleteLoadBalancer
// @Summary Delete a load balancer
// @Tags    loadbalancer
// @Param   key path string true "name of the load balancer" extensions(x-example=web)
// @Success 204 "the load balancer is deleted"
// @Failure 400,404,409,507
// @x-added true
// @Router  /onos/kubevirtnetworking/loadbalancer/{key} [delete]

// @ID      listSecurityGroups
// @Summary All security groups
// @Tags    security-group
// @Produce json
// @Success 200 {object} object{security-groups=[]securityGroupJSON} "the security groups, in no order that means something"
// @Router  /onos/kubevirtnetworking/security-group [get]

// @ID          createSecurityGroup
// @Summary     Create a security group
// @Description Ports name the security groups that hold for them.
// @Tags        security-group
// @Accept      json
// @Produce     json
// @Param       securitygroup body securityGroupJSON true "the security group"
// @Success     201 "the security group is stored"
// @Failure     409 "there is a security group of this id, or others kept changing the same objects"
// @Failure     507
// @x-added     true
// @Router      /onos/kubevirtnetworking/security-group [post]

// @ID      getSecurityGroup
// @Summary One security group
// @Tags    security-group
// @Produce json
// @Param   key path string true "id of the security group" extensions(x-example=sg-1)
// @Success 200 {object} securityGroupJSON "the security group"
// @Failure 400,404
// @x-added true
// @Router  /onos/kubevirtnetworking/security-group/{key} [get]

// @ID          updateSecurityGroup
// @Summary     Replace a security group
// @Description The body is the whole security group; its id must be that of the path.
// @Tags        security-group
// @Accept      json
// @Produce     json
// @Param       key path string true "id of the security group" extensions(x-example=sg-1)
// @Param       securitygroup body securityGroupJSON true "the security group"
// @Success     200 "the security group is replaced"
// @Failure     404,409,507
// @x-added     true
// @Router      /onos/kubevirtnetworking/security-group/{key} [put]

// @ID      deleteSecurityGroup
// @Summary Delete a security group
// @Tags    security-group
// @Param   key path string true "id of the security group" extensions(x-example=sg-1)
// @Success 204 "the security group is deleted"
// @Failure 400,404,409,507
// @x-added true
// @Router  /onos/kubevirtnetworking/security-group/{key} [delete]

// @ID      listPorts
// @Summary All ports
// @Tags    port
// @Produce json
// @Success 200 {object} object{ports=[]portJSON} "the ports, in no order that means something"
// @x-added true
// @Router  /onos/kubevirtnetworking/port [get]

// @ID          createPort
// @Summary     Create a port
// @Description A port is a network interface of a VM. deviceId is the integration bridge of the worker that runs the VM.
// @Tags        port
// @Accept      json
// @Produce     json
// @Param       port body portJSON true "the port"
// @Success     201 "the port is stored"
// @Failure     409 "there is a port of this macAddress, or others kept changing the same objects"
// @Failure     507
// @x-added     true
// @Router      /onos/kubevirtnetworking/port [post]

// @ID      getPort
// @Summary One port
// @Tags    port
// @Produce json
// @Param   key path string true "macAddress of the port" extensions(x-example=02:00:00:00:00:11)
// @Success 200 {object} portJSON "the port"
// @Failure 400,404
// @x-added true
// @Router  /onos/kubevirtnetworking/port/{key} [get]

// @ID          updatePort
// @Summary     Replace a port
// @Description The body is the whole port; its macAddress must be that of the path.
// @Tags        port
// @Accept      json
// @Produce     json
// @Param       key path string true "macAddress of the port" extensions(x-example=02:00:00:00:00:11)
// @Param       port body portJSON true "the port"
// @Success     200 "the port is replaced"
// @Failure     404,409,507
// @x-added     true
// @Router      /onos/kubevirtnetworking/port/{key} [put]

// @ID      deletePort
// @Summary Delete a port
// @Tags    port
// @Param   key path string true "macAddress of the port" extensions(x-example=02:00:00:00:00:11)
// @Success 204 "the port is deleted"
// @Failure 400,404,409,507
// @x-added true
// @Router  /onos/kubevirtnetworking/port/{key} [delete]
