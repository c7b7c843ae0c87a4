# What each target does stands in CONTRIBUTING.md.

GO          ?= go
FUZZTIME    ?= 1m
TESTFLAGS   ?=
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The tests of these packages share the machine's processors with switches and
# servers that they start, so they run one package at a time.
INTEGRATION := ./integration/...
# Sources of the version control are not stamped: a clone that another user owns
# would not build. The version comes from VERSION.
GOBUILD     := $(GO) build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)'
LINT        := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.DEFAULT_GOAL := build

.PHONY: build
build:
	CGO_ENABLED=0 $(GOBUILD) -o bin/kvnet ./cmd/kvnet

.PHONY: test
test: deps vet test-unit test-integration

.PHONY: deps
deps:
	@.ci/deps gcc ovs-vswitchd ip ping curl

.PHONY: vet
vet:
	$(GO) vet ./...

.PHONY: test-unit
test-unit:
	$(GO) test -race -timeout 15m $(TESTFLAGS) $$($(GO) list ./... | grep -v '/integration')

.PHONY: test-integration
test-integration: build
	@[ "$$(id -u)" = 0 ] || echo 'The packet, golden and wire tests make network namespaces and switches, which needs root: run make test as root.' >&2
	$(GO) test -race -p 1 -count 1 -timeout 25m $(TESTFLAGS) $(INTEGRATION)

.PHONY: test-lb-minute
test-lb-minute: deps build
	$(GO) test -race -count 1 -timeout 10m -v ./integration/packets -run '^TestLB$$/.*/under_traffic' -updating 1m

# The server that both use runs on loopback, with data of its own.
LIVE := $(GO) run -buildvcs=false ./integration/api/live -binary bin/kvnet

.PHONY: test-api
test-api: build
	@.ci/deps python3
	python3 -m venv integration/api/.venv
	integration/api/.venv/bin/pip install --quiet --requirement integration/api/requirements.txt
	$(LIVE) integration/api/run

.PHONY: test-ui
test-ui: build
	@.ci/deps chromium node npm
	cd integration/ui && npm ci --no-audit --no-fund
	$(LIVE) node --test integration/ui/page.test.mjs

.PHONY: demo
demo:
	@[ "$$(id -u)" = 0 ] || { echo 'The demo makes network namespaces and switches, which needs root: run make demo as root.' >&2; exit 1; }
	@.ci/deps ovs-vswitchd ip curl
	@$(MAKE) --no-print-directory build
	@$(GO) run -buildvcs=false ./integration/cmd/demo -binary bin/kvnet

.PHONY: demo-cluster
demo-cluster:
	@[ "$$(id -u)" = 0 ] || { echo 'The demo makes network namespaces and switches, which needs root: run make demo-cluster as root.' >&2; exit 1; }
	@.ci/deps ovs-vswitchd ip curl
	@$(MAKE) --no-print-directory build
	@$(GO) run -buildvcs=false ./integration/cmd/democluster -binary bin/kvnet

# FAULTS are the cases to run, by an expression on their names; KILLS is how often
# the leader is killed for the figures.
FAULTS      ?= all
KILLS       ?= 5

# Servers that are worse than the shipped one on purpose: without generation ids, and
# with the store's leader where kvnet's leader is.
.PHONY: build-nogeneration build-together
build-nogeneration build-together: build-%:
	CGO_ENABLED=0 $(GOBUILD) -tags kvnet_$* -o bin/kvnet-$* ./cmd/kvnet

.PHONY: test-faults
test-faults: deps build build-nogeneration build-together
	@[ "$$(id -u)" = 0 ] || { echo 'The faults happen to network namespaces and switches, which needs root: run make test-faults as root.' >&2; exit 1; }
	@.ci/deps nft
	KVNET_BINARY=$(CURDIR)/bin/kvnet KVNET_NOGENERATION_BINARY=$(CURDIR)/bin/kvnet-nogeneration \
		KVNET_TOGETHER_BINARY=$(CURDIR)/bin/kvnet-together \
		$(GO) test -count 1 -timeout 60m -v ./integration/faults -faults '$(FAULTS)' -kills $(KILLS) $(TESTFLAGS)

# DURATION is how long clients and faults go on.
DURATION    ?= 10m

.PHONY: test-linear
test-linear: deps build
	@[ "$$(id -u)" = 0 ] || { echo 'The servers run in network namespaces, which needs root: run make test-linear as root.' >&2; exit 1; }
	@.ci/deps nft
	KVNET_BINARY=$(CURDIR)/bin/kvnet $(GO) test -count 1 -timeout 0 -v ./integration/linear -run '^TestLinearizable$$' -linear $(DURATION) $(TESTFLAGS)

.PHONY: bench
bench: build
	@$(GO) run -buildvcs=false ./integration/cmd/bench -binary bin/kvnet
	$(GO) test -run '^$$' -bench . -benchmem $(TESTFLAGS) $$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -rn1 dirname | sort -u)

.PHONY: lint
lint:
	$(GO) run $(LINT) run ./...

.PHONY: generate
generate:
	$(GO) generate ./...

.PHONY: fuzz
fuzz:
	@set -e; grep -rho --include='*_test.go' -H '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file fuzz; do \
		echo "== $${fuzz#func } ($$(dirname "$$file"))"; \
		$(GO) test -run '^$$' -fuzz "^$${fuzz#func }$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")"; \
	done

.PHONY: clean
clean:
	rm -rf bin integration/api/.venv integration/ui/node_modules
