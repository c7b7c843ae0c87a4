package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvnet/cluster/store"
	"kvnet/model"
	"kvnet/southbound/reconcile"
)

// storeMetrics publishes how long the store's operations take and how they end.
type storeMetrics struct{ seconds *prometheus.HistogramVec }

func newStoreMetrics(r prometheus.Registerer) storeMetrics {
	m := storeMetrics{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kvnet_store_operation_seconds", Help: "Time that operations of the store took, by kind and result.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	}, []string{"operation", "result"})}
	r.MustRegister(m.seconds)
	return m
}

// Operation implements store.Observer.
func (m storeMetrics) Operation(op store.Op, took time.Duration, err error) {
	m.seconds.WithLabelValues(string(op), outcome(err)).Observe(took.Seconds())
}

var (
	revisionDesc = prometheus.NewDesc("kvnet_store_revision", "Revision of the store that this server has reached.", nil, nil)
	usedDesc     = prometheus.NewDesc("kvnet_store_used_bytes", "Bytes in use in the file of the embedded store.", nil, nil)
	quotaDesc    = prometheus.NewDesc("kvnet_store_quota_bytes", "Limit of the bytes in use; writes are refused above.", nil, nil)
	freeDesc     = prometheus.NewDesc("kvnet_store_disk_free_bytes", "Bytes that the disk of the embedded store has left.", nil, nil)
	watchesDesc  = prometheus.NewDesc("kvnet_store_watches_lost_total", "How often the watch was lost.", nil, nil)
	badDesc      = prometheus.NewDesc("kvnet_store_unreadable_values", "Stored values that this server can't read.", nil, nil)
	leadingDesc  = prometheus.NewDesc("kvnet_leading", "1 if this server leads.", nil, nil)
	lagDesc      = prometheus.NewDesc("kvnet_watch_lag_revisions", "Revisions of the store that this server has not reached, of those that were there when it last asked.", nil, nil)
	delayDesc    = prometheus.NewDesc("kvnet_watch_lag_seconds", "Time that this server took to reach the revision of the store when it last asked.", nil, nil)
	switchesDesc = prometheus.NewDesc("kvnet_switches_connected", "Switches that are connected, by the role of this server.", []string{"role"}, nil)
	tlsDesc      = prometheus.NewDesc("kvnet_openflow_tls_failures_total", "Connections over TLS that ended before the switch had shown a certificate that is accepted.", nil, nil)
	storedDesc   = prometheus.NewDesc("kvnet_cluster_term", "Newest term that this server has read from the store.", nil, nil)
	quorumDesc   = prometheus.NewDesc("kvnet_store_quorum", "1 if the embedded store has a quorum, as far as this server knows.", nil, nil)
	storeLeads   = prometheus.NewDesc("kvnet_store_leads", "1 if the embedded store's own leader runs here.", nil, nil)
	votersDesc   = prometheus.NewDesc("kvnet_store_voters", "Members of the embedded store that have a vote.", nil, nil)
	termDesc     = prometheus.NewDesc("kvnet_term", "Term under which this server leads.", nil, nil)
)

// collector publishes the gauges of the store and of the engine that leads now.
type collector struct{ s *server }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{revisionDesc, usedDesc, quotaDesc, freeDesc, watchesDesc, badDesc, leadingDesc, termDesc, storedDesc, quorumDesc, storeLeads, votersDesc, lagDesc, delayDesc, switchesDesc, tlsDesc} {
		ch <- d
	}
	(*reconcile.Engine)(nil).Describe(ch)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	opened := c.s.opened.Load()
	if opened == nil {
		return
	}
	st := opened.Stats()
	gauge(revisionDesc, float64(st.Revision))
	gauge(badDesc, float64(st.Unreadable))
	ch <- prometheus.MustNewConstMetric(watchesDesc, prometheus.CounterValue, float64(st.WatchesLost))
	gauge(lagDesc, float64(c.s.lag.revisions(st.Revision)))
	gauge(delayDesc, time.Duration(c.s.lag.delay.Load()).Seconds())
	c.switches(ch)
	ch <- prometheus.MustNewConstMetric(tlsDesc, prometheus.CounterValue, float64(c.s.of.TLSFailures()))
	if st.Quota > 0 {
		gauge(usedDesc, float64(st.Used))
		gauge(quotaDesc, float64(st.Quota))
		gauge(freeDesc, float64(st.Free))
	}
	term, _ := opened.Leader()
	gauge(storedDesc, float64(term.Term))
	if h, ok := opened.Health(); ok {
		gauge(quorumDesc, yes(h.Quorum))
		gauge(storeLeads, yes(h.Leads))
		gauge(votersDesc, float64(h.Voters))
	}
	l := c.s.leading.Load()
	gauge(leadingDesc, yes(l != nil))
	if l == nil {
		return
	}
	gauge(termDesc, float64(l.term.Term))
	l.engine.Collect(ch)
}

// yes is a fact as a number.
func yes(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// switches counts the connected switches by role.
func (c collector) switches(ch chan<- prometheus.Metric) {
	roles := map[model.Role]int{model.RoleMaster: 0, model.RoleSlave: 0, model.RoleEqual: 0}
	for sw := range c.s.db.Snapshot().Switches() {
		if sw.Connected {
			roles[sw.Role]++
		}
	}
	for role, n := range roles {
		ch <- prometheus.MustNewConstMetric(switchesDesc, prometheus.GaugeValue, float64(n), string(role))
	}
}
