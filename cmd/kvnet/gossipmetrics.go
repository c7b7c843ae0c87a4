package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvnet/cluster/gossip"
)

// clusterMetrics publishes what happens among the servers.
type clusterMetrics struct {
	members   *prometheus.GaugeVec
	refused   *prometheus.CounterVec
	rejoins   *prometheus.CounterVec
	sessions  *prometheus.CounterVec
	calls     *prometheus.HistogramVec
	elections prometheus.Counter
	lost      prometheus.Counter
}

func newClusterMetrics(r prometheus.Registerer) *clusterMetrics {
	m := &clusterMetrics{
		members:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kvnet_gossip_members", Help: "Servers that the gossip knows, by state, this one too."}, []string{"state"}),
		refused:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kvnet_gossip_refused_total", Help: "Servers that the gossip refused, by reason."}, []string{"reason"}),
		rejoins:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kvnet_gossip_rejoins_total", Help: "Attempts to reach missing servers, by result."}, []string{"result"}),
		sessions:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kvnet_gossip_sessions_lost_total", Help: "Sessions with other servers that ended; dead: nobody listened there any more."}, []string{"dead"}),
		calls:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kvnet_gossip_call_seconds", Help: "Time that requests to other servers took, by kind and result.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9)}, []string{"kind", "result"}),
		elections: prometheus.NewCounter(prometheus.CounterOpts{Name: "kvnet_elections_won_total", Help: "Terms that this server has taken."}),
		lost:      prometheus.NewCounter(prometheus.CounterOpts{Name: "kvnet_terms_ended_total", Help: "Terms of this server that have ended."}),
	}
	r.MustRegister(m.members, m.refused, m.rejoins, m.sessions, m.calls, m.elections, m.lost)
	for _, reason := range gossip.Refusals {
		m.refused.WithLabelValues(string(reason))
	}
	return m
}

func outcome(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

// Members implements gossip.Observer.
func (m *clusterMetrics) Members(alive, failed, left int) {
	m.members.WithLabelValues("alive").Set(float64(alive))
	m.members.WithLabelValues("failed").Set(float64(failed))
	m.members.WithLabelValues("left").Set(float64(left))
}

// Refused implements gossip.Observer.
func (m *clusterMetrics) Refused(reason gossip.Refusal) {
	m.refused.WithLabelValues(string(reason)).Inc()
}

// Rejoined implements gossip.Observer.
func (m *clusterMetrics) Rejoined(err error) { m.rejoins.WithLabelValues(outcome(err)).Inc() }

// SessionLost implements gossip.Observer.
func (m *clusterMetrics) SessionLost(dead bool) {
	label := "no"
	if dead {
		label = "yes"
	}
	m.sessions.WithLabelValues(label).Inc()
}

// Called implements gossip.Observer.
func (m *clusterMetrics) Called(kind string, took time.Duration, err error) {
	m.calls.WithLabelValues(kind, outcome(err)).Observe(took.Seconds())
}
