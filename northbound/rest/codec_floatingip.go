package rest

import "kvnet/model"

// floatingIPJSON is ONOS's form of a floating IP.
type floatingIPJSON struct {
	ID          *string `json:"id" validate:"required,key" example:"fip-1" minLength:"1" maxLength:"4096"`
	RouterName  *string `json:"routerName" validate:"required" example:"edge"`
	NetworkName *string `json:"networkName" validate:"required" example:"outside"`
	FloatingIP  *string `json:"floatingIp" validate:"required,host" example:"203.0.113.20" format:"ip"`
	PodName     *string `json:"podName,omitempty" example:"virt-launcher-vm1"`
	VMName      *string `json:"vmName,omitempty" example:"vm1"`
	// The address of the VM, or of a load balancer, that the floating IP leads to.
	FixedIP *string `json:"fixedIp,omitempty" validate:"omitempty,host" example:"192.0.2.10" format:"ip"`
} // @name KubevirtFloatingIp

func (*floatingIPJSON) entity() string { return "KubevirtFloatingIp" }

func (i *floatingIPJSON) check(f *faults) {
	if *i.ID == "" {
		f.add("id is empty: Kubevirt floating IP ID cannot be null")
	}
}

func (i *floatingIPJSON) key() string { return *i.ID }

func (i *floatingIPJSON) apply(model.Object) model.Object {
	return &model.FloatingIP{
		ID:          *i.ID,
		RouterName:  *i.RouterName,
		NetworkName: *i.NetworkName,
		FloatingIP:  address(i.FloatingIP),
		PodName:     i.PodName,
		VMName:      i.VMName,
		FixedIP:     address(i.FixedIP),
	}
}

func encodeFloatingIP(i *model.FloatingIP) *floatingIPJSON {
	return &floatingIPJSON{
		ID:          &i.ID,
		RouterName:  &i.RouterName,
		NetworkName: &i.NetworkName,
		FloatingIP:  addressText(i.FloatingIP),
		PodName:     i.PodName,
		VMName:      i.VMName,
		FixedIP:     addressText(i.FixedIP),
	}
}
