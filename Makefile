# make without a target says what there is.
.DEFAULT_GOAL := help
.PHONY: help test race lint orders orders-real vectors chaos sweep tidy ci

LINT_VERSION := $(shell sed -n 's/^lint_version=//p' .ci/run)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## all tests; servers as CONTRIBUTING.md says, missing ones are counted at the end
	@skips=$$(mktemp); ONCEFENCE_SKIPS=$$skips go test ./...; status=$$?; \
	cat $$skips >&2; rm -f $$skips; exit $$status

race: ## all tests under the race detector, in random order
	@skips=$$(mktemp); ONCEFENCE_SKIPS=$$skips go test -race -shuffle=on ./...; status=$$?; \
	cat $$skips >&2; rm -f $$skips; exit $$status

lint: ## golangci-lint of the version that CI uses
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION) run ./...

orders: ## the example: orders charged once while consumers are killed, no server needed
	go run ./examples/orders-consumer

# The next target belongs to the example's real run.
orders-real: ## the example on real Kafka and Redis, every kind of effect, kills and faults
	go run ./test/ordersreal

vectors: ## compare the published key vectors with the library (WRITE=1 fills in new ones)
	go run ./test/vectors $(if $(WRITE),-write)

sweep: ## kill consumers at every fault point (KILLS=1000, SEED to replay); about 3 minutes
	go run ./test/sweep/cmd -kills $(or $(KILLS),1000) -seed $(or $(SEED),0)

chaos: ## storm on real Kafka and Redis, with the figures of docs/guarantees.md (SEED to replay); under 15 minutes
	go run ./test/chaos/cmd -seed $(or $(SEED),0)

tidy: ## go.mod and go.sum as the code needs them
	go mod tidy

ci: ## everything that must hold before a change lands (Debian, as root)
	bash .ci/run
