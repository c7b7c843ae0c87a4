package rest

import "kvnet/model"

// floatingIPJSON is ONOS's form of a floating IP.
type floatingIPJSON struct {
	ID          *string `json:"id" validate:"required,key"`
	RouterName  *string `json:"routerName" validate:"required"`
	NetworkName *string `json:"networkName" validate:"required"`
	FloatingIP  *string `json:"floatingIp" validate:"required,host"`
	PodName     *string `json:"podName,omitempty"`
	VMName      *string `json:"vmName,omitempty"`
	FixedIP     *string `json:"fixedIp,omitempty" validate:"omitempty,host"`
}

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
