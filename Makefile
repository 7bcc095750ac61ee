# Two commands do everything on a fresh Debian with Go and make: `make demo` and `make test`.
# What a target needs beyond Go and coreutils it installs itself (tests/need).

GO          ?= go
VCS         := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo true || echo false)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 20s

.PHONY: build demo test race fuzz lint bench bench-archive bench-queries cover test-vm test-clients test-agents soak clean

build: ## bin/toolrun, static
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=$(VCS) -ldflags '-s -w' -o bin/toolrun ./cmd/toolrun

demo: build ## the main job, once, on a small project made for it
	$(GO) run ./tests/demo

test: ## every test; with TOOLRUN_REQUIRE_SANDBOX=1 a skip for want of a sandbox is a failure
	$(GO) test -count=1 -timeout 20m ./...
	cd archive/redact/oracle && GOFLAGS=-mod=mod $(GO) test -count=1 ./...

race: ## the unit tests under the race detector (needs cgo)
	tests/need cc:gcc && CGO_ENABLED=1 $(GO) test -race -timeout 30m $$($(GO) list ./... | grep -v /tests)

fuzz: ## each fuzz target for FUZZTIME
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|/[^/]*:func | |' | while read -r d f; do \
	  echo "$$d $$f"; $(GO) test $$d -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime=1x || exit 1; done

lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./... && $(GO) run $(STATICCHECK) ./...

bench: build ## a warm `true` against bwrap and a bare exec; the record, what is signed of it, sealed months and redaction against their yardsticks
	tests/need bwrap:bubblewrap script:bsdutils zstd:zstd && $(GO) run ./tests/bench
	$(GO) run ./tests/bench/archive
	$(GO) test -run '^$$' -bench 'AppendWithTree|DurableRow|EvidenceOfACall|Verify|SHA256' -benchtime 2s ./archive ./archive/evidence ./archive/redact
	cd archive/redact/oracle && GOFLAGS=-mod=mod $(GO) test -run '^$$' -bench Gitleaks -benchtime 2s .

bench-archive: build ## a month of 1 GiB sealed against zstd and tar, and a year of 1000 calls a day
	tests/need zstd:zstd && $(GO) run ./tests/bench/archive -rows 200000 -calls 110000 -days 365

bench-queries: build ## questions about a million rows against grep, jq and Python
	tests/need jq python3 && $(GO) run ./tests/bench/queries

cover: ## coverage of the unit tests
	mkdir -p bin && $(GO) test -coverprofile=bin/cover.out $$($(GO) list ./... | grep -v /tests) && $(GO) tool cover -func=bin/cover.out | tail -n 1

test-vm: ## the sandbox's tests on pure cgroup v2, as root and as a user, on two kernels, in an emulated machine
	tests/need qemu-system-x86_64:qemu-system-x86 busybox:busybox-static lz4:lz4 zstd:zstd && tests/vm/suite "" trixie

test-clients: build tests/agents/clients/node_modules ## the official TypeScript SDK clients and the inspector
	CLIENTS="sdk sdk2 inspector" STRICT=1 tests/agents/run bin/toolrun

test-agents: build tests/agents/clients/node_modules ## those and the big agents (2 GB of npm)
	tests/agents/install.sh && tests/agents/run bin/toolrun

# Not `npm ci`: it refuses a lock file that lacks an optional package which the registry does not have.
tests/agents/clients/node_modules: tests/agents/clients/package-lock.json
	tests/need npm:nodejs+npm && cd tests/agents/clients && npm install --no-save && touch node_modules

soak: ## what takes long: 100,000 calls in a row, 2000 calls of all kinds with 50 kills, each way of ending a server 50 times, 300 kills under 8 writers, a power failure at every step, other planted secrets
	TOOLRUN_SOAK_CALLS=100000 $(GO) test -count=1 -timeout 120m -v -run TestManyCallsInARow ./tests
	TOOLRUN_CHAOS=2000/50 $(GO) test -count=1 -timeout 60m -v -run TestChaos ./tests
	TOOLRUN_ENDINGS=50 $(GO) test -count=1 -timeout 60m -v -run TestEveryWayOfEnding ./tests
	TOOLRUN_SOAK=1 $(GO) test -count=1 -timeout 60m -v -run 'Kill|Power' ./archive
	TOOLRUN_SEED=$$(date +%s) $(GO) test -count=1 -v -run Planted ./archive/redact ./tests

clean:
	rm -rf bin demo tests/agents/.runs
