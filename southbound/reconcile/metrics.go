package reconcile

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the counters of engines. They outlive an engine, because a server
// may lead more than once.
type Metrics struct {
	messages    *prometheus.CounterVec
	bundles     prometheus.Histogram
	refused     prometheus.Counter
	repairs     prometheus.Counter
	recomputed  prometheus.Counter
	differences prometheus.Counter
	waves       *prometheus.CounterVec
}

// NewMetrics makes the counters and publishes them in r, unless that is nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kvnet_messages_total",
			Help: "Messages that switches have put in force, by kind."}, []string{"kind"}),
		bundles: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "kvnet_bundle_seconds",
			Help: "Time from the opening of a bundle to the reply to its commit.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14)}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "kvnet_refusals_total",
			Help: "Messages that switches have refused."}),
		repairs: prometheus.NewCounter(prometheus.CounterOpts{Name: "kvnet_audit_repairs_total",
			Help: "Differences that audits and removal reports found on switches and that were put right."}),
		recomputed: prometheus.NewCounter(prometheus.CounterOpts{Name: "kvnet_owners_computed_total",
			Help: "Owners whose rules were computed."}),
		differences: prometheus.NewCounter(prometheus.CounterOpts{Name: "kvnet_recompute_differences",
			Help: "Owners for which the full recompute found something else than the incremental one. It must stay 0."}),
		waves: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kvnet_waves_total",
			Help: "Changes over several switches, by whether all switches answered in time."}, []string{"result"}),
	}
	if r != nil {
		r.MustRegister(m.messages, m.bundles, m.refused, m.repairs, m.recomputed, m.differences, m.waves)
	}
	return m
}

var opNames = map[opKind]string{
	opGroupAdd: "group_add", opGroupModify: "group_modify", opFlowAdd: "flow_add", opFlowDelete: "flow_delete",
	opFlowClean: "flow_delete", opOrphan: "flow_delete", opStray: "flow_delete", opGroupDelete: "group_delete",
	opOrphanGroup: "group_delete", opAnnounce: "packet_out", opForeign: "flow_delete", opForeignGroup: "group_delete",
}

func (m *Metrics) sent(n [opKinds]int) {
	for k, n := range n {
		if n > 0 {
			m.messages.WithLabelValues(opNames[opKind(k)]).Add(float64(n))
		}
	}
}

func (m *Metrics) bundle(d time.Duration) { m.bundles.Observe(d.Seconds()) }

var (
	rulesDesc     = prometheus.NewDesc("kvnet_rules", "Rules of kvnet's that a switch holds.", []string{"switch"}, nil)
	tablesDesc    = prometheus.NewDesc("kvnet_table_rules", "Rules of kvnet's that a switch holds, by table.", []string{"switch", "table"}, nil)
	groupsDesc    = prometheus.NewDesc("kvnet_groups", "Groups of kvnet's that a switch holds.", []string{"switch"}, nil)
	conflictsDesc = prometheus.NewDesc("kvnet_conflicts", "Claims that lose against the claim of another owner for the same rule.", []string{"switch"}, nil)
	waitingDesc   = prometheus.NewDesc("kvnet_waiting_owners", "Owners that wait for something before all their rules exist.", nil, nil)
)

// Describe implements prometheus.Collector.
func (e *Engine) Describe(ch chan<- *prometheus.Desc) {
	ch <- rulesDesc
	ch <- tablesDesc
	ch <- groupsDesc
	ch <- conflictsDesc
	ch <- waitingDesc
}

// Collect implements prometheus.Collector.
func (e *Engine) Collect(ch chan<- prometheus.Metric) {
	for _, t := range e.sorted() {
		t.mu.Lock()
		rules, groups, conflicts, tables := t.installed, t.groupsIn, t.conflicts, t.tables()
		t.mu.Unlock()
		d := t.dpid.String()
		for table, n := range tables {
			ch <- prometheus.MustNewConstMetric(tablesDesc, prometheus.GaugeValue, float64(n), d, strconv.Itoa(int(table)))
		}
		ch <- prometheus.MustNewConstMetric(rulesDesc, prometheus.GaugeValue, float64(rules), d)
		ch <- prometheus.MustNewConstMetric(groupsDesc, prometheus.GaugeValue, float64(groups), d)
		ch <- prometheus.MustNewConstMetric(conflictsDesc, prometheus.GaugeValue, float64(conflicts), d)
	}
	e.mu.Lock()
	waiting := len(e.waiting)
	e.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(waiting))
}

// tables counts the rules that the switch holds by table; called with t.mu held.
func (t *target) tables() map[uint8]int {
	out := map[uint8]int{}
	t.all(func(c *cell) {
		if c.have {
			out[c.key.table]++
		}
	})
	return out
}
