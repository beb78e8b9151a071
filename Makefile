# Everything that is built, tested or released goes through here; CI runs
# `make ci` and nothing else. Needs Go and gcc (for the race detector); the
# other tools are pinned in tools/go.mod and built once into .cache/bin.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# A workspace file above the checkout would silently change what is built.
export GOWORK := off
export GOLANGCI_LINT_CACHE := $(CURDIR)/.cache/golangci-lint

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unversioned)
BIN     := $(CURDIR)/.cache/bin
LINT    := $(BIN)/golangci-lint
GQLGEN  := $(BIN)/gqlgen
TOOLMOD := tools/go.mod tools/go.sum
STAGE   := tools/stage

# Per package: a test that hangs must die with its stacks printed, before the
# stage's budget ends it without a word.
TEST_TIMEOUT  ?= 9m
CASES_TIMEOUT ?= 90m
# Tests with a full count that are no field case.
FULL          := IdleNode|DrainsUnderMail|SurplusSpreads|QuorumLost|MailUnderChaos|LosesANode
FUZZTIME      ?= 30s
BENCH         ?= .
BENCHTIME     ?= 1s
BENCH_OUT     ?= docs/bench
NODES         ?= 100
SEATS         ?= 10000

# Seconds each stage of `make ci` may take, from cold caches on two cores.
BUDGET_BUILD_LINT := 240
BUDGET_TEST       := 600
BUDGET_SIM        := 240
BUDGET_ROBUST     := 180

# Seeds that `make sim` plays, and the first of them. The stage of `make ci` plays
# what fits into its budget, and fails if that is less than SIM_LEAST.
SEEDS     ?= 200
SEED      ?= 1
SIM_FOR   := 190s
SIM_LEAST := 60

# For how long `make robust` does faults, in seconds; the stage of `make ci` has to
# build and to come to rest within its budget too.
ROBUST_SHORT := 100
ROBUST_LONG  := 1800
ROBUST_CI    := 45

GQLGEN_CONFIG := $(wildcard graph/gqlgen.yml)
GO_SOURCES     = $$(find . \( -name '.?*' -o -name node_modules -o -path ./data -o -path ./bin \) -prune -o -name '*.go' -print)

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without cgo and path trimming, as lint does it, so that the two share every
# compiled dependency: on cold caches that is half a minute of the stage.
.PHONY: build
build: ## the program, into bin/tenure
	CGO_ENABLED=0 go build -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o bin/tenure ./cmd/node

.PHONY: run
run: build ## build, then one node on this machine with its data in ./data
	bin/tenure dev --data-dir ./data

.PHONY: test
test: ## every test but the long runs, with the race detector (Go and gcc only)
	CGO_ENABLED=1 go test -race -shuffle=on -timeout $(TEST_TIMEOUT) ./...

.PHONY: cases
cases: ## field cases, schedules and fleets at their full counts (long)
	TENURE_CASES=full CGO_ENABLED=1 go test -race -count=1 -v -timeout $(CASES_TIMEOUT) -run 'Case|Schedule|$(FULL)' ./...

# Without the race detector, under which a fleet takes five times as long: `make
# test` plays a few seeds with it. Of -v only the sum and what failed is shown.
# A panic in a fleet ends them all: then it is one of the last seeds that began.
SIM_SHOWS = awk '/^=== RUN/ {began[n++ % 2] = $$3; next} /^(=== |    --- PASS)/ {next} {print} /^panic:/ {print "in one of", began[0], began[1]}'
SIM = GOGC=400 go test -count=1 -v -timeout 120m -run '^TestSeeds$$' ./sim

.PHONY: sim
sim: ## whole fleets broken on purpose, in virtual time: SEEDS=200 from SEED=1 on; SAVE=dir keeps what fails as a story
	@$(SIM) -sim.seeds=$(SEEDS) -sim.seed=$(SEED) $(if $(SAVE),-sim.save=$(abspath $(SAVE))) | $(SIM_SHOWS)

.PHONY: sim-budget
sim-budget: ## as many of them as the stage of `make ci` has time for
	@$(SIM) -sim.seeds=$(SIM_LEAST) -sim.seed=$(SEED) -sim.for=$(SIM_FOR) | $(SIM_SHOWS)

.PHONY: model
model: ## the models in docs/model, checked with spin, and their unsafe variants (Debian: spin, gcc)
	tools/model

.PHONY: proof
proof: ## puts each fault of proof/ into the source, one at a time, and shows what notices it; FAULT=name for one
	@go test -count=1 -v -timeout 120m ./proof -proof.run $(if $(FAULT),-proof.only=$(FAULT)) | { grep -vE '^(=== |    --- PASS)' || true; }

ROBUST = CGO_ENABLED=0 go test -c -o $(BIN)/robust ./robust && ROBUST_SEED=$(SEED) ROBUST_KEEP=$(if $(KEEP),$(abspath $(KEEP)))

.PHONY: robust
robust: ## real processes killed, stopped, cut off, with clocks stepped and disks full: SEED=1; LONG=1 for half an hour; KEEP=dir; LESS=1 without a network (Debian: iproute2, nftables)
	$(ROBUST) ROBUST_SECONDS=$(if $(LONG),$(ROBUST_LONG),$(ROBUST_SHORT)) ROBUST_WALL=$(if $(LONG),1) ROBUST_LESS=$(LESS) $(BIN)/robust -test.run '^TestRobust$$' -test.timeout 0

.PHONY: robust-budget
robust-budget: ## a short run for `make ci`; where namespaces are not allowed, processes and clocks only
	$(ROBUST) ROBUST_SECONDS=$(ROBUST_CI) ROBUST_LESS=1 $(BIN)/robust -test.run '^TestRobust$$' -test.timeout 0

.PHONY: fuzz
fuzz: ## each fuzz target in turn, FUZZTIME (30s) each
	tools/fuzz $(FUZZTIME)

.PHONY: bench
bench: ## Tenure's figures, into docs/bench/tenure.json; ONLY=renew,nodes chooses, SHORT=1 tries whether it runs
	go run ./bench -out $(BENCH_OUT)/tenure.json $(if $(ONLY),-only $(ONLY)) $(if $(SHORT),-short)

# A module of its own: etcd belongs into no build of the product.
.PHONY: bench-peers
bench-peers: ## a claim beside a raw publish, a key-value lease and etcd, in one run, into docs/bench/peers.json
	cd bench/peers && go run . -out $(abspath $(BENCH_OUT))/peers.json $(if $(SHORT),-short)

.PHONY: bench-docs
bench-docs: ## brings docs/bench/*.json into docs/benchmarks.md and the charts
	go run ./bench/chart

.PHONY: microbench
microbench: ## every Go benchmark; BENCH=pattern and BENCHTIME=1s choose
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

.PHONY: scale
scale: ## a whole fleet in one process against three brokers: NODES=100 SEATS=10000
	TENURE_SCALE=$(NODES)x$(SEATS) TENURE_SCALE_OUT=$(abspath $(BENCH_OUT))/scale.json go test -count=1 -v -timeout 120m -run '^TestScale$$' ./cmd/node

.PHONY: golden
golden: ## rewrite the golden files, then show what changed: commit only what you can explain
	tools/golden
	@git --no-pager diff --stat -- '*testdata*'

.PHONY: generate
generate: $(GQLGEN) ## GraphQL code from schema.graphql
ifneq ($(GQLGEN_CONFIG),)
	cd $(dir $(GQLGEN_CONFIG)) && $(GQLGEN) generate
else
	@echo 'generate: no graph/gqlgen.yml, nothing to generate'
endif

.PHONY: generate-check
generate-check: ## fail when the generated code is not what the schema gives
	tools/unchanged '$(MAKE) --no-print-directory generate' graph

.PHONY: lint
lint: $(LINT) ## gofmt, then golangci-lint with .golangci.yml
	@unformatted="$$(gofmt -l $(GO_SOURCES))"; if [[ -n "$$unformatted" ]]; then \
		printf 'not gofmt-ed, run `make fmt`:\n%s\n' "$$unformatted" >&2; exit 1; fi
	CGO_ENABLED=0 $(LINT) run ./...

.PHONY: fmt
fmt: ## gofmt every Go file
	gofmt -w $(GO_SOURCES)

.PHONY: ci
ci: ## all that must pass before a change lands, each stage within its budget
	@$(STAGE) build+lint $(BUDGET_BUILD_LINT) $(MAKE) --no-print-directory build lint generate-check
	@$(STAGE) test $(BUDGET_TEST) $(MAKE) --no-print-directory test
	@$(STAGE) sim $(BUDGET_SIM) $(MAKE) --no-print-directory sim-budget
	@$(STAGE) robust $(BUDGET_ROBUST) $(MAKE) --no-print-directory robust-budget

.PHONY: clean
clean: ## remove what was built, tools and lint cache too; ./data stays
	rm -rf bin .cache

$(LINT): $(TOOLMOD)
	cd tools && CGO_ENABLED=0 GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(GQLGEN): $(TOOLMOD)
	cd tools && CGO_ENABLED=0 GOBIN=$(BIN) go install github.com/99designs/gqlgen
	@touch $@
