# clusterset-dns: `make help` lists what there is.

MODULE   := github.com/clusterset-dns/clusterset-dns
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION)
BIN      := bin

# What checks and tests the project is built once, into a cache outside of the checkout.
CACHE    ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/clusterset-dns
TOOLS    := $(CACHE)/tools/$(shell cat test/tools/go.mod test/tools/go.sum | sha256sum | cut -c1-16)

# A tool with a module of its own in test/tools; $(call pinned,helm) builds it, into the cache of the Go toolchain, and is its path.
pinned    = $$(cd test/tools/$(1) && GOFLAGS=-tags=remove_all_sd go tool -n $(1))

# Whatever a target starts ends with make, even where make is killed: the kernel kills the shell of a recipe when
# make dies, and what runs in it when the shell dies.
BOUND    := setpriv --pdeathsig KILL
SHELL    := $(shell command -v setpriv)
.SHELLFLAGS := --pdeathsig KILL /bin/sh -ec

export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help

##@ Use

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: bed $(BIN)/demo build ## Start two clusters, join them and resolve names across; HOLD=1 keeps them running.
	@$(BOUND) $(BIN)/demo $(if $(HOLD),--hold)

.PHONY: build
build: ## Build the two programs and kubectl-clusterset, static, into bin/.
	@mkdir -p $(BIN)
	@go build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/...

##@ Check

.PHONY: test
test: bed tools ## Run all tests: unit, integration, end to end.
	@$(BOUND) $(MAKE) --no-print-directory -j test-unit test-kubeproxy
	@$(BOUND) $(MAKE) --no-print-directory test-bed

# What the linter has vetted is not vetted again, where the checkout is makes no difference to what is compiled, and nobody debugs what is
# linked: without DWARF and symbols that takes half the time.
GO_TEST  := go test -race -vet=off -trimpath '-ldflags=-s -w'

.PHONY: test-unit
test-unit: ## Run the tests that need no cluster.
	@echo '== unit tests'
	@CGO_ENABLED=1 $(BOUND) $(GO_TEST) $$(go list ./... | grep -v '^$(MODULE)/test')
	@echo '== 10,000 clustersets'
	@$(BOUND) go test -trimpath -run TestClustersets ./controller/merge

# The packages of tests that take longest begin first, so that none is left alone at the end, and those that mostly wait run beside those
# that work. No result is taken from the cache: Go does not see which programs they start. Under the race detector garbage is dear to
# collect, and memory is not short.
LONGEST  := $(addprefix ./test/,fault kubectl datapath dns controller deploy quickstart demo bench controlplane conventions)

.PHONY: test-bed
test-bed: bed tools ## Run the tests on real control planes.
	@echo '== tests on real control planes: what each package says comes when all before it have ended'
	@CGO_ENABLED=1 $(BOUND) test/tools/with-progress $(BOUND) $(GO_TEST) -exec "env GOGC=400" -count=1 -p 4 -v -timeout 25m \
	  $(LONGEST) $$(go list ./test/... | grep -vE '/test/(soak|images)$$')

.PHONY: test-kubeproxy
test-kubeproxy: ## Hold the hints against kube-proxy's own code.
	@cd test/kubeproxy && CGO_ENABLED=1 $(BOUND) go test -race ./...

# What a release needs besides, and CI runs.
.PHONY: test-release
test-release: bed ## Soak for two minutes, and build the images twice.
	@echo '== a soak of two minutes, and the images'
	@CGO_ENABLED=1 $(BOUND) test/tools/with-progress $(BOUND) $(GO_TEST) -count=1 -v -timeout 15m ./test/soak ./test/images

.PHONY: test-datapath
test-datapath: bed ## Count packets through real kube-proxies; MODE=nftables or MODE=iptables for one of its modes.
	@CGO_ENABLED=1 $(BOUND) go test -race -count=1 -v -timeout 15m $(if $(MODE),-run '(?i)$(MODE)') ./test/datapath/...

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## Check format and code, and that the check of pure packages bites.
	@echo '== lint'
	@test -z "$$(git ls-files '*.go' | xargs gofmt -l)" || { git ls-files '*.go' | xargs gofmt -l; exit 1; }
	@$(BOUND) $(TOOLS)/golangci-lint run ./...
	@GOLANGCI_LINT=$(TOOLS)/golangci-lint ./test/tools/prove-depguard
	@go mod verify >/dev/null && go mod tidy -diff
	@$(MAKE) --no-print-directory lint-deploy

.PHONY: lint-deploy
lint-deploy: tools ## Check the chart and the alerts.
	@echo '== lint of deploy/'
	@$(call pinned,helm) lint --strict --quiet deploy/chart
	@promtool=$(call pinned,promtool); $$promtool check rules deploy/monitoring/alerts.yaml; $$promtool test rules deploy/monitoring/alerts_test.yaml

.PHONY: format
format: $(TOOLS)/golangci-lint ## Format the code.
	@$(TOOLS)/golangci-lint fmt ./...

.PHONY: vulncheck
vulncheck: $(TOOLS)/govulncheck ## Look for known vulnerabilities; needs the Go vulnerability database (or GOVULNDB).
	@$(TOOLS)/govulncheck $(if $(GOVULNDB),-db $(GOVULNDB)) ./...

.PHONY: bench
bench: bed build ## Measure against CoreDNS's own plugin; prints the tables and writes docs/benchmarks.md.
	@$(BOUND) go run ./test/bench -out docs/benchmarks.md

SOAK ?= 20m
.PHONY: soak
soak: bed $(BIN)/soak build ## Change and break three clusters at random for SOAK (20m), and hold every answer against what happened; SEED=n repeats.
	@$(BOUND) $(BIN)/soak -for $(SOAK) $(if $(SEED),-seed $(SEED)) $(if $(LOGS),-logs $(LOGS))

FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (30s).
	@for package in $$(grep -rlE '^func Fuzz' --include='*_test.go' plugin controller | xargs -n1 dirname | sort -u); do \
	  for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' $$package/*_test.go | cut -c6-); do \
	    echo "== $$package $$target"; go test ./$$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
	  done; done

##@ Parts

.PHONY: tools
tools: ## Build helm and promtool (cached).
	@for tool in helm promtool; do (cd test/tools/$$tool && GOFLAGS=-tags=remove_all_sd $(BOUND) ../with-progress go tool -n $$tool >/dev/null); done

.PHONY: manifest
manifest: tools ## Render the manifests in deploy/ from the chart.
	@install -m 644 $$(go list -m -f '{{.Dir}}' sigs.k8s.io/mcs-api)/config/crd/*.yaml deploy/chart/files/crds/
	@HELM=$(call pinned,helm) ./deploy/render

.PHONY: images
images: ## Build the images of both programs, for amd64 and arm64, into bin/images: an OCI layout each, with SBOMs.
	@cd test/tools/images && $(BOUND) ../with-progress go run . -out $(CURDIR)/$(BIN)/images -version $(VERSION) \
	  -revision "$$(git rev-parse HEAD 2>/dev/null)" -epoch "$$(git log -1 --format=%ct 2>/dev/null || echo 0)"

.PHONY: bed
bed: ## Build the control planes that the demo and the tests start (cached).
	@$(BOUND) go run ./test/controlplane/cmd/build-binaries

.PHONY: $(BIN)/demo $(BIN)/soak
$(BIN)/demo $(BIN)/soak: $(BIN)/%:
	@mkdir -p $(BIN)
	@go build -trimpath -o $@ ./test/$*

$(TOOLS)/%:
	@echo 'building $* (once; it takes a few minutes)'
	@mkdir -p $(TOOLS)
	@cd test/tools && $(BOUND) ../tools/with-progress go build -o $(TOOLS)/ tool

.PHONY: clean
clean: ## Remove what was built in the checkout; the cache stays.
	@rm -rf $(BIN)
