# clusterset-dns: `make help` lists the targets.

MODULE   := github.com/clusterset-dns/clusterset-dns
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION)
BIN      := bin

# Tools that check and test the project are built once, into a cache outside of the checkout.
CACHE    ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/clusterset-dns
TOOLS    := $(CACHE)/tools/$(shell cat test/tools/go.mod test/tools/go.sum | cksum | cut -d' ' -f1)

# $(call pinned,helm) builds a tool that a module in test/tools pins, into the cache of the Go toolchain, and returns its path.
pinned    = $$(cd test/tools/$(1) && GOWORK=off GOFLAGS=-tags=remove_all_sd go tool -n $(1))

# Everything that a target starts ends with make, even if make is killed: the kernel kills the shell of a recipe when make
# dies, and the shell's children when the shell dies. Only Linux has setpriv; elsewhere, `make build` works without it.
.SHELLFLAGS := -ec
SETPRIV  := $(shell command -v setpriv)
ifneq ($(SETPRIV),)
BOUND    := setpriv --pdeathsig KILL
SHELL    := $(SETPRIV)
.SHELLFLAGS := --pdeathsig KILL /bin/sh -ec
endif

# -trimpath makes builds independent of the checkout's path. All targets use the same flags, so nothing is compiled twice.
export CGO_ENABLED ?= 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

.DEFAULT_GOAL := help

##@ Use

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Join two clusters and resolve names across, on models of API servers; HOLD=1 keeps them running.
	@mkdir -p $(BIN)
	@go build -ldflags '-s -w' -o $(BIN)/demo ./test/demo
	@$(BOUND) $(BIN)/demo $(if $(HOLD),--hold)

.PHONY: recording
recording: ## Record the demo into docs/demo.svg, which README.md shows.
	@mkdir -p $(BIN)
	@go build -ldflags '-s -w' -o $(BIN)/demo ./test/demo
	@$(BOUND) $(BIN)/demo --recording docs/demo.svg

.PHONY: build
build: ## Build the two programs and kubectl-clusterset, static, into bin/.
	@mkdir -p $(BIN)
	@go build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/...

##@ Check

# The first of two tiers is for every change. It compiles neither Kubernetes nor all CoreDNS plugins, and shares packages
# with `make build` by using its flags. The second uses the race detector, for which everything is compiled again.
.PHONY: test
test: ## Run what every change needs: format, unit tests, simulation, vet.
	@test -z "$$(git ls-files '*.go' | xargs gofmt -l)" || { git ls-files '*.go' | xargs gofmt -l; exit 1; }
	@$(BOUND) $(MAKE) --no-print-directory test-unit
	@$(BOUND) $(MAKE) --no-print-directory test-sim
	@$(BOUND) $(MAKE) --no-print-directory vet

.PHONY: test-all
test-all: test ## Run everything else, too: what a release needs.
	@$(BOUND) $(MAKE) --no-print-directory simulate test-race-unit test-contract test-bed
	@$(BOUND) $(MAKE) --no-print-directory test-scenarios
	@$(BOUND) $(MAKE) --no-print-directory test-kubeproxy test-race test-release lint mutate
	@$(BOUND) $(MAKE) --no-print-directory fuzz FUZZTIME=1m

# Test binaries need no debugger: linking without DWARF and symbols takes half the time. Vet has its own target.
GO_TEST  := go test -vet=off '-ldflags=-s -w'
GO_RACE  := CGO_ENABLED=1 $(BOUND) $(GO_TEST) -race

# The package with all of CoreDNS's plugins is tested with the images, for which it is compiled anyway: it has 690 more
# packages. The packages of FIRST have few dependencies, so their results come early.
FULL     := ./cmd/coredns
FIRST    := $(addprefix ./controller/,limits liveness) ./plugin/multicluster/record
slim      = $$(go list ./... ./test/... | grep -vxF "$$(go list $(FULL))")
units     = $(FIRST) $$(echo $(slim) | tr ' ' '\n' | grep -v '^$(MODULE)/test')

# Tests that read files outside of their module are never cached (-count=1).
.PHONY: test-unit
test-unit: ## Run the tests that need no cluster.
	@echo '== unit tests'
	@$(BOUND) $(GO_TEST) $(units)
	@$(BOUND) $(GO_TEST) -count=1 ./test/conventions ./test/mutation ./test/demo

# There is enough memory to collect garbage less often.
.PHONY: test-sim
test-sim: ## Run the simulation: scenarios, and 100 random schedules.
	@echo '== simulation'
	@$(BOUND) $(GO_TEST) -exec "env GOGC=400" -count=1 -timeout 45m ./test/sim/...

# It uses the packages that the tests have compiled. `make lint` vets the test beds, too.
.PHONY: vet
vet: ## Vet the product and the tests of the first tier.
	@echo '== vet'
	@$(BOUND) go vet $(units) $(addprefix ./test/,conventions demo mutation scenario sim/...)

.PHONY: test-race-unit
test-race-unit: ## Run the tests that need no cluster under the race detector.
	@echo '== unit tests under the race detector'
	@$(GO_RACE) $(units)

.PHONY: test-race
test-race: test-race-unit ## Run them and the simulation under the race detector, which takes four times as long.
	@echo '== simulation under the race detector'
	@$(GO_RACE) -exec "env GOGC=400" -timeout 45m ./test/sim ./test/sim/apiserver/... ./test/sim/network
	@$(GO_RACE) -timeout 45m ./test/sim/schedule -seeds=20

# The simulation's assumptions on real API servers: rights, CRD versions, conflicts, watches, a partition, leader election.
CONTRACT := Contract|EveryCallIsAllowed|Rights

.PHONY: test-contract
test-contract: bed ## Run the contract tests, on real API servers.
	@echo '== contract tests on real API servers'
	@$(GO_RACE) -exec "env GOGC=400" -count=1 -v -timeout 45m -run '^Test($(CONTRACT))' ./test/controller ./test/deploy

# The slowest packages start first, so that none runs alone at the end, and packages that mostly wait run next to busy
# ones. Go does not track the programs that these tests start, so results are never cached. Garbage collections are slow
# under the race detector, and there is enough memory.
LONGEST  := $(addprefix ./test/,datapath interop deploy controller bench)

.PHONY: test-bed
test-bed: bed tools ## Run the tests on real control planes, but for the scenarios and networks with iptables (make test-datapath).
	@echo '== tests on real control planes: each package reports when all before it have ended'
	@$(GO_RACE) -exec "env GOGC=400" -count=1 -p 4 -v -timeout 45m -skip '^Test((Contract)?Scenarios|NetworksIPTables)$$' \
	  $(LONGEST) $$(go list ./test/... | grep -vE '/test/(quickstart|conventions|demo)$$|/test/sim')

# These run alone, because their clocks are six times as fast.
.PHONY: test-scenarios
test-scenarios: bed ## Run all scenarios on real control planes, which takes 10 minutes.
	@echo '== scenarios on real control planes'
	@$(GO_RACE) -exec "env GOGC=400" -count=1 -v -timeout 60m -parallel 3 -run '^TestScenarios$$' ./test/controller

.PHONY: test-kubeproxy
test-kubeproxy: ## Hold the hints against kube-proxy's own code.
	@cd test/kubeproxy && GOWORK=off $(GO_RACE) ./...

.PHONY: test-release
test-release: bed ## Build the images twice, do what the quickstart says with a release, upgrade, and break the clusters.
	@echo '== the images, and a release from its files'
	@cd deploy/release && GOWORK=off $(BOUND) go test -vet=off ./...
	@$(BOUND) $(GO_TEST) $(FULL)
	@$(GO_RACE) -count=1 -v -timeout 45m ./test/quickstart

.PHONY: test-datapath
test-datapath: bed ## Count packets through real kube-proxies; MODE=nftables or MODE=iptables for one of its modes.
	@$(GO_RACE) -count=1 -v -timeout 15m $(if $(MODE),-run '(?i)$(MODE)') ./test/datapath/...

# Separate, because the stores are Debian packages, and each takes minutes.
.PHONY: test-stateful
test-stateful: bed ## Break clusters under databases and queues that know each other by name; STORE=redis for one of them.
	@$(GO_RACE) -tags stateful -count=1 -v -timeout 45m -run '^TestStateful$$$(if $(STORE),/^$(STORE)$$)' ./test/datapath

# Separate modules are vetted with the flags of their tests, so that nothing is compiled twice.
.PHONY: lint
lint: $(TOOLS)/golangci-lint ## Check the code with golangci-lint, the requirements, the chart, the alerts and the workflows.
	@echo '== lint'
	@$(BOUND) $(TOOLS)/golangci-lint run ./... ./test/...
	@for module in . test; do (cd $$module && GOWORK=off go mod tidy -diff); done
	@CGO_ENABLED=1 $(BOUND) go vet -race -tags stateful ./test/datapath
	@cd test/kubeproxy && GOWORK=off CGO_ENABLED=1 $(BOUND) go vet -race ./...
	@cd deploy/release && GOWORK=off $(BOUND) $(TOOLS)/golangci-lint run ./...
	@$(MAKE) --no-print-directory lint-deploy

.PHONY: lint-deploy
lint-deploy: tools ## Check the chart, the alerts and the workflows.
	@echo '== lint of deploy/ and .github/'
	@$(call pinned,actionlint) .github/workflows/*.yml
	@! command -v shellcheck >/dev/null || shellcheck -x -P SCRIPTDIR deploy/render deploy/kind/*.sh .ci/run test/datapath/stateful/*.bash
	@$(call pinned,helm) lint --strict --quiet --set clusterId=east deploy/chart
	@promtool=$(call pinned,promtool); $$promtool check rules deploy/chart/files/monitoring/alerts.yaml; $$promtool test rules deploy/chart/files/monitoring/alerts_test.yaml

.PHONY: format
format: $(TOOLS)/golangci-lint ## Format the code.
	@$(TOOLS)/golangci-lint fmt

.PHONY: vulncheck
vulncheck: $(TOOLS)/govulncheck ## Look for known vulnerabilities; needs the Go vulnerability database (or GOVULNDB).
	@$(TOOLS)/govulncheck $(if $(GOVULNDB),-db $(GOVULNDB)) ./... ./test/...

.PHONY: bench
bench: bed ## Measure DNS against prebuilt records, and controllers; prints the tables, with how they were taken.
	@$(BOUND) go run ./test/bench

CHANGES  ?= 10m
.PHONY: scale
scale: bed ## Measure with 511 and with 50 simulated clusters, whose endpoints change for CHANGES (10m), and one large service.
	@for shape in wide deep; do $(BOUND) go run ./test/bench -shape $$shape -changes $(CHANGES); done
	@$(BOUND) go run ./test/bench -shape tall -changes 1m

FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (30s), one on each core.
	@grep -roE '^func Fuzz[A-Za-z0-9_]*' --include='*_test.go' plugin controller cmd | sed 's|/[^/]*:func | |' | sort -u | \
	  xargs -P "$$(nproc)" -L 1 sh -c 'echo "== $$0 $$1"; go test ./$$0 -run "^$$" -fuzz "^$$1\$$" -fuzztime $(FUZZTIME) -parallel 1'

SEEDS ?= 200
SEED  ?= 101
.PHONY: simulate
simulate: ## Run SEEDS (200) random schedules on simulated cluster sets, the first of them SEED (101: make test runs those before), and print how many there were a second.
	@$(BOUND) go test -vet=off -count=1 -timeout 0 -v -run '^TestSchedules$$' ./test/sim/schedule -seeds=$(SEEDS) -seed=$(SEED) | \
	  awk '/^ *(=== |--- PASS)/ {next} {print} /^ *(FAIL|--- FAIL|panic:)/ {failed = 1} END {exit failed}'

.PHONY: mutate
mutate: ## Make the mistakes that test/mutation lists, one at a time; unit tests or the simulation must notice each. MUTANTS=leader: those that match.
	@echo '== mutants'
	@$(BOUND) go run ./test/mutation $(if $(MUTANTS),-run '$(MUTANTS)')

##@ Release

RELEASE  := $(BIN)/release
EPOCH     = $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
build     = cd deploy/release && GOWORK=off $(BOUND) go run . -version $(VERSION) -epoch $(EPOCH) -platforms '$(PLATFORMS)' \
  -revision "$$(git rev-parse HEAD 2>/dev/null)"

.PHONY: release
release: tools ## Build all artifacts of release VERSION, such as 0.1.0, into bin/release: the same bytes each time. PLATFORMS=linux/amd64: for that alone.
	@echo '$(VERSION)' | grep -qE '^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$$' || { echo 'make release VERSION=0.1.0: the version must be a semantic version'; exit 1; }
	@rm -rf $(RELEASE); mkdir -p $(RELEASE)
	@SOURCE_DATE_EPOCH=$(EPOCH) $(call pinned,helm) package deploy/chart --version $(VERSION) --app-version $(VERSION) --destination $(RELEASE)
	@HELM=$(call pinned,helm) CHART=$(RELEASE)/clusterset-dns-$(VERSION).tgz ./deploy/render $(RELEASE)/rendered
	@cp $(RELEASE)/rendered/manifest.yaml $(RELEASE)/
	@rm -r $(RELEASE)/rendered
	@$(build) -out $(abspath $(RELEASE)) -images $(abspath $(RELEASE))/images
	@cd $(RELEASE) && sums=$$(find . -maxdepth 1 -type f | sed 's|^\./||' | LC_ALL=C sort | xargs sha256sum) && echo "$$sums" >checksums.txt

REGISTRY ?= ghcr.io/clusterset-dns
.PHONY: push
push: ## Push the images and the chart of bin/release to REGISTRY, and list them with their digests in bin/release/pushed.txt.
	@cd deploy/release && GOWORK=off $(BOUND) go run . -push $(REGISTRY) -images $(abspath $(RELEASE))/images -version $(VERSION) >$(abspath $(RELEASE))/pushed.txt
	@$(call pinned,helm) push $(RELEASE)/clusterset-dns-$(VERSION).tgz oci://$(REGISTRY)/charts $(PUSHFLAGS) 2>&1 | \
	  awk '{print >"/dev/stderr"} /^Digest: / {print "$(REGISTRY)/charts/clusterset-dns@" $$2; found = 1} END {exit !found}' >>$(RELEASE)/pushed.txt
	@cat $(RELEASE)/pushed.txt

.PHONY: kind
kind: ## Start two joined kind clusters with a demo application; needs Docker, kind, kubectl and helm.
	@./deploy/kind/kind.sh up

CONTEXTS ?= kind-east,kind-west
REPORTS  ?= $(BIN)/conformance/reports
.PHONY: conformance
conformance: ## Run the conformance suite of the MCS API on the clusters of CONTEXTS, and write the report for the SIG's site into REPORTS; fetches the suite.
	@./deploy/kind/conformance.sh '$(CONTEXTS)' '$(REPORTS)' '$(VERSION)'

##@ Parts

# A release and the manifests need one of these.
PINNED := helm helm3 promtool actionlint
release manifest: PINNED := helm

.PHONY: tools
tools: ## Build helm (the newest version and 3), promtool and actionlint (cached).
	@echo 'building $(words $(PINNED)) tools, unless they are cached: $(PINNED)'
	@for tool in $(PINNED); do (cd test/tools/$$tool && GOWORK=off GOFLAGS=-tags=remove_all_sd $(BOUND) go tool -n $${tool%3} >/dev/null); done

.PHONY: manifest
manifest: tools ## Render the manifests in deploy/ from the chart.
	@install -m 644 $$(go list -m -f '{{.Dir}}' sigs.k8s.io/mcs-api)/config/crd/*.yaml deploy/chart/files/crds/
	@HELM=$(call pinned,helm) ./deploy/render

.PHONY: reference
reference: ## Write the lists in docs/reference from the code.
	@REFERENCE=write $(BOUND) go test -count=1 -run '^TestReference$$' ./test/conventions

IMAGES   ?= $(BIN)/images

.PHONY: images
images: ## Build the images of both programs, for amd64 and arm64, into bin/images: an OCI layout each, with SBOMs.
	@$(build) -images $(abspath $(IMAGES))

.PHONY: bed
bed: ## Build the control planes that the demo and the tests start (cached).
	@$(BOUND) go run ./test/controlplane/cmd/build-binaries

$(TOOLS)/%:
	@echo 'building golangci-lint and govulncheck in one build, once for this machine; it takes minutes'
	@mkdir -p $(TOOLS)
	@cd test/tools && GOWORK=off $(BOUND) go build -o $(TOOLS)/ tool

.PHONY: clean
clean: ## Remove what was built in the checkout; the cache stays.
	@rm -rf $(BIN)
