// Package model holds the entities that kvnet works with, their validation and
// the description of a change from one version of an entity to the next.
//
// These are the inner types: addresses are netip values, MACs are six bytes and
// enumerations are Go constants. The forms that clients and switches use (ONOS
// JSON, OpenFlow bytes) live at the edges and are translated there.
package model
