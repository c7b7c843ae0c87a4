// Package stats reads the counters of rules from the switches of gateways, and
// publishes them as ONOS's gauges of routers and floating IPs. They are gauges
// although they grow, because dashboards use them so: they fall back when a rule
// is installed anew.
package stats
