SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

FUZZTIME ?= 20s
BENCHTIME ?= 1s
N ?= 4
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
PROTOC_GEN_GO := google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
PROTOC_GEN_GO_GRPC := google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2

# The version is git's word where there is git, and cmd/gangrun's own default
# where there is none. Go itself must not ask git: it fails in a checkout that
# another user owns.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
# What gangrun never uses of its libraries would cost every one of its processes
# a millisecond at its start. Without symbols (-s -w) it is a third smaller: it is sent to
# every host.
TAGS := urfave_cli_no_docs,grpcnotrace
LDFLAGS := -s -w $(if $(VERSION),-X main.version=$(VERSION))
export GOFLAGS += -buildvcs=false
# The NVML bindings declare functions that the driver's header calls deprecated.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

.PHONY: help deps deps/% build demo hosts test soak bench failures fuzz lint docs proto clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

deps: ## install what building, testing and the demo need and this machine lacks
	@internal/deps/install build test demo

deps/%:
	@internal/deps/install $*

build: deps/build ## write bin/gangrun, one static binary, and bin/gangrun-nvml, its child
	CGO_ENABLED=0 go build -trimpath -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o bin/gangrun ./cmd/gangrun
	@headers=$$(readelf -lW bin/gangrun); if grep -q INTERP <<<"$$headers"; then \
		echo 'gangrun: error: bin/gangrun is dynamically linked' >&2; \
		echo 'gangrun: hint: look for what imports cgo: CGO_ENABLED=0 must be enough' >&2; \
		rm -f bin/gangrun; exit 1; fi
	CGO_ENABLED=1 go build -trimpath -ldflags '-extldflags=-Wl,-z,lazy' -o bin/gangrun-nvml ./cmd/gangrun-nvml

demo: deps/demo build ## run the demo
	examples/demo

hosts: export CMD ?=
hosts: deps/hosts $(if $(SLURM),deps/slurm) $(if $(CONTAINERD),deps/containerd) build ## N (4) simulated hosts, and a shell, or CMD, that reaches them by SSH; SLURM=1: a Slurm cluster on them; CONTAINERD=1: a containerd on each; as root
	go build -o bin/hosts ./internal/testhosts/hosts
	@PATH="$$PWD/bin:$$PATH" bin/hosts -n '$(N)' $(if $(SLURM),-slurm) $(if $(CONTAINERD),-containerd) -c "$$CMD"

# -count=1: tests build the binary and read the tree through other programs,
# which go test's cache cannot see. vet is told -race so that both compile each package once. GORACE:
# the race detector holds up the end of every process by a second. -ldflags=-w: linking a test takes half the time
test: export GANGRUN_TEST_NOSKIP := 1
test: export GORACE := atexit_sleep_ms=0
test: deps/test build ## vet, then every test under the race detector; none may skip
	go vet -race -tags '$(TAGS)' ./...
	go test -race -vet=off -tags '$(TAGS)' -ldflags=-w -count=1 -timeout 75m ./...
	go test -count=1 -run '^TestDocument(Diagnosis)?$$' ./internal/diagnose ./internal/curve/judge

soak: export GANGRUN_TEST_NOSKIP := 1
soak: deps/test build ## the long random tests; SEED=n and COUNT=n are passed on
	go test -tags soak -p 1 -count=1 -timeout 170m -run Soak -skip '^TestSoakScripts$$' ./...
	GORACE=atexit_sleep_ms=0 go test -race -tags soak -count=1 -timeout 20m -run '^TestSoakScripts$$' ./cmd/gangrun

bench: deps/test deps/bench build ## gangrun beside what it is measured against, then every benchmark, BENCHTIME (1s) each
	go build -o bin/hosts ./internal/testhosts/hosts
	go run ./internal/bench -gangrun bin/gangrun
	go test -run '^$$' -bench . -benchtime $(BENCHTIME) ./...

failures: deps/failures build ## a job for each reason of the Philly study, beside mpirun in a shell loop; UPDATE=1 writes docs/failures.md
	go run ./internal/failures -gangrun bin/gangrun $(if $(UPDATE),-page docs/failures.md)

fuzz: deps/test ## every fuzz test, FUZZTIME (20s) each
	@listed=$$(go test -list '^Fuzz' ./...); \
	targets=$$(awk '/^Fuzz/{names[n++]=$$1} /^ok/{for(i=0;i<n;i++)print $$2, names[i]; n=0}' <<<"$$listed"); \
	[[ -n $$targets ]] || { echo 'gangrun: error: no fuzz test in the tree' >&2; exit 1; }; \
	failed=(); while read -r package name; do \
		echo "== $$package $$name"; \
		go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) "$$package" </dev/null || failed+=("$$package.$$name"); \
	done <<<"$$targets"; \
	if (($${#failed[@]})); then printf 'gangrun: error: fuzz test failed: %s\n' "$${failed[@]}" >&2; exit 1; fi

lint: ## gofmt, vet, staticcheck, and go.mod true and tidy
	@unformatted=$$(gofmt -l .); [[ -z $$unformatted ]] || { \
		printf 'gangrun: error: not as gofmt writes it: %s\n' $$unformatted >&2; \
		echo 'gangrun: hint: run: gofmt -w .' >&2; exit 1; }
	go vet -tags soak ./...
	go run $(STATICCHECK) -tags soak ./...
	go mod verify
	go mod tidy -diff

docs: deps/docs ## write the generated parts of docs/ anew
	UPDATE=1 go test -count=1 -run '^TestDocument' ./internal/curve/judge ./internal/diagnose ./internal/diagnose/rules ./internal/failures ./internal/htmlreport ./internal/jobfile ./preflight ./supervisor/exitcode ./topology
	UPDATE=1 GANGRUN_TEST_NOSKIP=1 go test -tags soak -count=1 -timeout 40m -run '^TestSoakHostFaults$$' ./cmd/gangrun
	UPDATE=1 GANGRUN_TEST_NOSKIP=1 go test -count=1 -run '^TestSlurm' ./cmd/gangrun

proto: deps/proto ## write internal/wire/*.pb.go anew; they are committed
	GOBIN='$(CURDIR)/.cache/bin' go install $(PROTOC_GEN_GO)
	GOBIN='$(CURDIR)/.cache/bin' go install $(PROTOC_GEN_GO_GRPC)
	PATH='$(CURDIR)/.cache/bin':$$PATH protoc -I . \
		--go_out=. --go_opt=paths=source_relative \
		--go-grpc_out=. --go-grpc_opt=paths=source_relative internal/wire/*.proto

clean: ## remove what make wrote: bin/ and .cache/
	rm -rf bin .cache
