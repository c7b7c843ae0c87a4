package rest

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the server's own.
type metrics struct {
	latency      *prometheus.HistogramVec
	inFlight     prometheus.Gauge
	authFailures prometheus.Counter
	refused      *prometheus.CounterVec
	lateReads    prometheus.Counter
	streams      prometheus.Gauge
	cutStreams   prometheus.Counter
	events       *prometheus.CounterVec
}

func newMetrics(r *prometheus.Registry, version string) (*metrics, error) {
	m := &metrics{
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kvnet_rest_request_duration_seconds",
			Help:    "Time from the header of a request to its answer, by route, method and status.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route", "method", "status"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kvnet_rest_requests_in_flight",
			Help: "Requests that are being worked on.",
		}),
		authFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kvnet_rest_auth_failures_total",
			Help: "Requests with missing or wrong credentials.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kvnet_rest_limit_refusals_total",
			Help: "Requests refused because of a limit, by limit.",
		}, []string{"limit"}),
		lateReads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kvnet_rest_late_own_writes_total",
			Help: "Writes that were answered before this server could read them.",
		}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kvnet_rest_event_streams",
			Help: "Streams of events that are open.",
		}),
		cutStreams: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kvnet_rest_event_streams_cut_total",
			Help: "Streams of events that were cut off because their clients read too slowly.",
		}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kvnet_rest_events_total",
			Help: "Events that this server has made, whether anybody reads them or not, by name.",
		}, []string{"event"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "kvnet_build_info",
		Help:        "Always 1; the labels say which kvnet this is.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	for _, c := range []prometheus.Collector{m.latency, m.inFlight, m.authFailures, m.refused, m.lateReads, m.streams, m.cutStreams, m.events, build} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// observe counts a request. Methods and routes are those of the route table, so
// that clients can't make new series.
func (m *metrics) observe(route, method string, status int, d time.Duration) {
	if route == "" {
		route = "none"
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
	default:
		method = "other"
	}
	m.latency.WithLabelValues(route, method, strconv.Itoa(status)).Observe(d.Seconds())
}

// metricsHandler serves the registry at /metrics and nothing else.
func metricsHandler(r *prometheus.Registry) http.Handler {
	metrics := promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 8, Timeout: 10 * time.Second})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/metrics" && (req.Method == http.MethodGet || req.Method == http.MethodHead) {
			metrics.ServeHTTP(w, req)
			return
		}
		e := refuse(http.StatusNotFound, "there is nothing at %s; the metrics are at /metrics", shown(req.URL.Path))
		if req.URL.Path == "/metrics" {
			e = refuse(http.StatusMethodNotAllowed, "%s can't be done here", shown(req.Method))
			w.Header().Set("Allow", "GET, HEAD")
		}
		b, err := marshal(errorJSON{e.code, e.message})
		if err != nil {
			b = nil
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(e.code)
		_, _ = w.Write(b) // the client may be gone
	})
}
