package stats

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"kvnet/model"
	"kvnet/model/state"
)

// Gauges publishes the counters that a Poller has read. It outlives the Poller,
// because a server may lead more than once. There are gauges only for what exists
// now: those of a router that goes are gone with the next scrape.
type Gauges struct {
	db    *state.DB
	reads *prometheus.CounterVec

	mu       sync.Mutex
	readings map[model.DPID]reading
}

// NewGauges makes gauges for the objects in db.
func NewGauges(db *state.DB) *Gauges {
	return &Gauges{
		db: db, readings: map[model.DPID]reading{},
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kvnet_counter_reads_total", Help: "Reads of the counters of a gateway's rules, by result.",
		}, []string{"result"}),
	}
}

// set publishes what was read of a switch.
func (g *Gauges) set(d model.DPID, r reading) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readings[d] = r
}

// retain forgets all switches that keep does not want.
func (g *Gauges) retain(keep func(model.DPID) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for d := range g.readings {
		if !keep(d) {
			delete(g.readings, d)
		}
	}
}

func (g *Gauges) reading(d model.DPID) (reading, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok := g.readings[d]
	return r, ok
}

// pair are the gauges of one direction.
type pair struct{ bytes, packets *prometheus.Desc }

func newPair(name, what string, labels []string) pair {
	return pair{
		prometheus.NewDesc(name+"_byte", "Bytes "+what+".", labels, nil),
		prometheus.NewDesc(name+"_pkts", "Packets "+what+".", labels, nil),
	}
}

var (
	snatLabels = []string{"routerName", "routerSnatIp", "merName"}
	fipLabels  = []string{"fipId", "fipAddress", "merName", "vmName", "networkName"}

	snatTX = newPair("snat_tx", "that VMs have sent through the SNAT of a router", snatLabels)
	snatRX = newPair("snat_rx", "that have come in for the SNAT address of a router", snatLabels)
	fipTX  = newPair("fip_tx", "that a VM has sent through its floating IP", fipLabels)
	fipRX  = newPair("fip_rx", "that have come in for the floating IP of a VM", fipLabels)
)

// Describe implements prometheus.Collector.
func (g *Gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, p := range []pair{snatTX, snatRX, fipTX, fipRX} {
		ch <- p.bytes
		ch <- p.packets
	}
	g.reads.Describe(ch)
}

// Collect implements prometheus.Collector.
func (g *Gauges) Collect(ch chan<- prometheus.Metric) {
	g.reads.Collect(ch)
	db := g.db.Snapshot()
	for r := range routers(db) {
		read, ok := g.reading(r.gateway.IntegrationDPID())
		if !ok {
			continue
		}
		labels := []string{r.Name, r.SNATIP().String(), r.gateway.Hostname}
		collect(ch, snatTX, read.snatUp, r.MAC, labels)
		collect(ch, snatRX, read.snatDown, r.SNATIP(), labels)
	}
	for f := range floatingIPs(db) {
		port := portOf(db, f)
		for n := range gateways(db) {
			read, ok := g.reading(n.IntegrationDPID())
			if !ok {
				continue
			}
			labels := []string{f.ID, f.FloatingIP.String(), n.Hostname, *f.VMName, f.NetworkName}
			collect(ch, fipRX, read.floatDown, f.FloatingIP, labels)
			if port != nil {
				collect(ch, fipTX, read.floatUp, port.MAC, labels)
			}
		}
	}
}

// collect sends the gauges of a rule, if there is one.
func collect[K comparable](ch chan<- prometheus.Metric, p pair, counters map[K]counter, k K, labels []string) {
	c, ok := counters[k]
	if !ok {
		return
	}
	ch <- prometheus.MustNewConstMetric(p.bytes, prometheus.GaugeValue, float64(c.bytes), labels...)
	ch <- prometheus.MustNewConstMetric(p.packets, prometheus.GaugeValue, float64(c.packets), labels...)
}
