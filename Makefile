# caughtup: `make demo` to watch it, `make test` to test it, `make check` before a commit.
PYTHON ?= $(shell sh scripts/find_python.sh)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
REWRITTEN := $(VENV)/.rewritten

KILLS ?= 10
SCENARIOS ?= 100000
SEED ?= 1000000
MINUTES ?= 3
FOLLOWER_JAR ?= build/caughtup-follower.jar

# Two processors: tests that wait leave them to others.
WORKERS := --numprocesses 4 --dist loadgroup --no-loadscope-reorder

# Tests start hundreds of commands: without files of bytecode each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install java classes prometheus ready images apiserver demo follower wheel test heavy thorough unsteady chaos soak proof schemas reference site chart example rules dashboards pictures lint types check lock pin clean

help:  ## Say what can be made
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

install: $(STAMP)  ## Create .venv with .venv/bin/caughtup

$(STAMP): requirements.lock pyproject.toml caughtup/__init__.py
	@sh scripts/make_venv.sh "$(PYTHON)" "$(VENV)"
	@touch $@

java:
	@sh scripts/ensure_java.sh >/dev/null

classes: java install
	@$(BIN)/python -m caughtup.demo.cluster.class_archive

prometheus:
	@sh scripts/ensure_tool.sh prometheus prometheus
	@sh scripts/ensure_tool.sh prometheus-alertmanager prometheus-alertmanager
	@sh scripts/ensure_tool.sh chromium chromium
	@sh scripts/ensure_tool.sh systemd-analyze systemd
	@sh scripts/ensure_tool.sh npm npm

images:
	@sh scripts/ensure_tool.sh buildah buildah
	@sh scripts/ensure_tool.sh debootstrap debootstrap
	@sh scripts/ensure_tool.sh podman podman
	@sh scripts/ensure_tool.sh runc runc
	@sh scripts/ensure_tool.sh systemd-nspawn systemd-container

apiserver:  ## build/kube-apiserver from Kubernetes' Go modules: Go 1.26, a quarter of an hour once
	@sh scripts/ensure_tool.sh etcd etcd-server
	@cd scripts/kube_apiserver && GOTOOLCHAIN=local CGO_ENABLED=0 go build -trimpath -ldflags \
	  "-s -w -X k8s.io/component-base/version.gitVersion=$$(GOTOOLCHAIN=local go list -m -f '{{.Version}}' k8s.io/kubernetes)" \
	  -o ../../build/kube-apiserver .

demo: java install  ## Embedded Kafka, a Streams application, the service, Spark, the page
	@$(BIN)/caughtup demo

follower: java install  ## FOLLOWER_JAR=build/caughtup-follower.jar, for Kafka Streams applications
	@$(BIN)/python -m caughtup.followers.kafka_streams.jar $(FOLLOWER_JAR)

wheel: follower  ## dist/caughtup-VERSION-py3-none-any.whl, all that an installation needs in it
	@rm -f dist/caughtup-*.whl
	@FOLLOWER_JAR=$(abspath $(FOLLOWER_JAR)) $(BIN)/python -m build --wheel --no-isolation --outdir dist . >/dev/null
	@ls dist/*.whl

# Each worker imports every test as pytest rewrites it: one process writes these for all, once.
$(REWRITTEN): $(STAMP)
	@$(BIN)/pytest --collect-only --quiet >/dev/null || true
	@touch $@

ready:  # all that the tests need
	@$(MAKE) --no-print-directory --jobs 2 install java
	@$(MAKE) --no-print-directory --jobs 2 prometheus classes $(REWRITTEN)

test: ready  ## The tests, against real Kafka, Spark and Prometheus
	@$(BIN)/pytest $(WORKERS) $(PYTEST_ARGS)

heavy: ready  ## The heavy tests, or a third of them: PART=1/3, PART=today
	@$(BIN)/pytest -m "heavy and not thorough and not unsteady" $(WORKERS) \
	  $(if $(PART),--part $(PART)) $(PYTEST_ARGS) $$(grep -rl --include='test_*.py' mark.heavy tests)

thorough: java prometheus images install classes heavy  ## What takes minutes each: a Spark cluster, the history killed KILLS=10 times
	@HISTORY_KILLS=$(KILLS) $(BIN)/pytest -m thorough
	@TESTS_THOROUGH=1 ORACLE_SCENARIOS=2000 $(BIN)/pytest -m "not thorough and not unsteady" \
	  $(WORKERS) --numprocesses 2 tests/oracle tests/simulation tests/followers tests/fuzz \
	  tests/models tests/agents tests/demo tests/integration/demo/test_broker_config.py \
	  tests/integration/service/test_restarts.py tests/integration/service/test_bad_input.py

unsteady: java prometheus install  ## Tests of what others' bugs may break under load: see pyproject.toml
	@$(BIN)/pytest -m unsteady

chaos: java install  ## MINUTES=3 of faults drawn from SEED, the service held against the truth
	@$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(if $(filter-out file,$(origin SEED)),--seed $(SEED))

soak: java install  ## MINUTES=3 of 50 groups a minute and 5,000 commits/s: what grows? build/soak.svg
	@$(BIN)/python -m tests.chaos.soak --minutes $(MINUTES)

proof: java install  ## SCENARIOS=100000 generated decisions, from SEED=1000000, against Kafka's jars
	@$(BIN)/python -m tests.oracle.prove $(SCENARIOS) $(SEED)

schemas: install  ## docs/topics.md and docs/topics/*.schema.json, from models/records
	@$(BIN)/python -m tests.support.topics

reference: install  ## docs/reference/, from settings, metrics and commands
	@$(BIN)/python -m tests.support.reference

site: install  ## The documents as a site, build/site; a link that is broken fails
	@$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --builder dirhtml \
	  --doctree-dir build/doctrees --conf-dir scripts/site . build/site
	@echo build/site/index.html

chart: install  ## charts/caughtup/values.schema.json, from the settings
	@$(BIN)/python -m tests.support.charts.values_schema

example: install  ## caughtup.example.toml, from the settings' own descriptions
	@$(BIN)/python -m caughtup.agents.configuration.text

rules: install  ## prometheus/caughtup.rules.yml, as `caughtup rules` makes it
	@$(BIN)/caughtup rules > prometheus/caughtup.rules.yml

dashboards: install  ## grafana/dashboards/, from scripts/dashboards
	@$(BIN)/python -m scripts.dashboards

pictures: prometheus install  ## docs/pictures/: the page in Chromium, light and dark, and the terminal
	@$(BIN)/python -m tests.support.pictures

lint: install
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: install
	@$(BIN)/mypy

check: lint types test  ## Lint, types, tests

lock:  ## Resolve requirements.lock again, and the images' parts of it
	@sh scripts/lock.sh "$(PYTHON)" --upgrade

pin:  ## Write the digests of the images that the Dockerfile and docker-compose.yml begin from
	@sh scripts/pin_images.sh Dockerfile docker-compose.yml

clean:  ## Remove .venv and what the tools leave
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
