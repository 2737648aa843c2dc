# Two commands on a fresh machine: `make quickstart` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.ready-dev

export OMP_NUM_THREADS ?= 1

.PHONY: quickstart answers test units kills smoke faults gpu long soak mutants check style types format
.PHONY: golden same-bits bench docs clusters

quickstart: $(READY)
	$(BIN)/mixsweep data fetch fashion-mnist
	$(BIN)/mixsweep run quickstart

# Writes reports/published/answers.md again: trains the missing runs of its studies and publishes their
# reports first. The page states how many hours its studies take. The open questions of examples/ run too.
answers: $(READY)
	studies=`$(BIN)/python -m docs.pages.answers --studies` && \
	$(BIN)/mixsweep run $$studies examples/*/study.yaml examples/*/sources.yaml && \
	$(BIN)/python -m docs.pages.archive `for study in $$studies; do echo runs/reports/$$study; done`

test: $(DEV)
	$(MAKE) --jobs=2 --output-sync=target units kills

# If the tests take more CPU seconds than this, pytest names the ten slowest files; with `-vv` it prints the
# seconds of every file.
CPU_SECONDS ?= 800

# `nice` gives `kills` the CPU first, because its tests wait for epochs with a time limit. The files are
# run in their given order: pytest-xdist would otherwise start slow files with few tests last, and one
# process would finish alone.
WORKERS := --numprocesses 2 --dist loadfile --no-loadscope-reorder
UNITS := --ignore=tests/faults --ignore=tests/hosts --ignore=tests/smoke --ignore=tests/style $(WORKERS)

units: $(DEV)
	nice -n 5 $(BIN)/python -m pytest tests $(UNITS) -m "not long" -rs --cpu-budget $(CPU_SECONDS)

# A launch whose driver is killed, and one whose workers are. They run in namespaces, which no signal can
# leave.
NAMESPACE := tests/faults/in_namespace.sh
KILLS := after_a_killed_driver or killed_workers_lose

kills: $(DEV)
	$(NAMESPACE) $(BIN)/python -m pytest tests/faults/test_drivers.py tests/faults/test_workers.py -m "not long" -k "$(KILLS)" -rs

# CI runs these two after `make check` and `make test`. `smoke` runs whole studies by the commands that a
# user types. `faults` tests other faults: of workers, disks, memory, networks and services.
smoke: $(DEV)
	$(BIN)/python -m pytest tests/smoke --numprocesses 2 --dist load -m "not long" -rs

faults: $(DEV)
	$(NAMESPACE) $(BIN)/python -m pytest tests/faults tests/hosts -m "not long" -k "not ($(KILLS))" -rs

# Tests on a real GPU, in a few minutes. They need PyTorch, torchvision, scikit-learn, pytest and
# pytest-timeout, but neither Ray nor MLflow.
gpu:
	$(PYTHON) -m pytest --noconftest tests/gpu -rs

# Tests that take too long for every change, one to two hours: for example every pair of dataset and
# network, further faults, and the commands of README.md and of the pages. CI runs them weekly.
LONG := --ignore=tests/faults --ignore=tests/hosts $(WORKERS)

long: $(DEV)
	$(BIN)/python -m pytest tests $(LONG) -m long -rs
	$(BIN)/python -m pytest tests $(LONG) -m "hypothesis and not long" --hypothesis-profile=long
	$(NAMESPACE) $(BIN)/python -m pytest tests/faults -m long -rs

# Runs the files of cluster/ on whole clusters whose hosts are Linux namespaces: about ten minutes. The
# results are written to reports/published/measurements.
clusters: $(DEV)
	PUBLISH=1 $(NAMESPACE) $(BIN)/python -m pytest tests/hosts -m long -rs

# Hundreds of faults and more: takes hours. The results are written to reports/published. Two soaks run at
# a time, because launches often wait.
SOAK := $(NAMESPACE) $(BIN)/python -m tests.soak
SOAKS := kills-1 kills-2 damage twice
soak: $(DEV)
	$(MAKE) --jobs=2 --keep-going $(SOAKS:%=soak-%)

soak-kills-%: $(DEV)
	$(SOAK).kills --sweeps 10 --kills 100 --minutes 300 --seed $*

soak-%: $(DEV)
	$(SOAK).$*

# Changes 200 tokens of twenty-one modules, one at a time; the tests of the module must fail for 92 % of
# them. About 10 minutes. Results are kept until the module or its tests change.
mutants: $(DEV)
	$(BIN)/python -m tests.soak.mutants

check: style types

style: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m pytest tests/style

types: $(DEV)
	nice -n 5 $(BIN)/mypy
	nice -n 5 $(BIN)/lint-imports

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Builds the documentation as HTML in docs/_build/html. Warnings are errors; nothing is downloaded.
docs: $(DEV)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html

# Adds the defaults of new fields, the keys of new runs and the draws of new entries to the frozen lists;
# existing ones stay. Writes the losses of new arms, and of arms whose losses changed; give the reason for
# such a change in the changelog. 2 minutes.
golden: $(DEV)
	$(BIN)/python -m tests.golden.freeze
	$(BIN)/python -m tests.golden.freeze_keys
	$(BIN)/python -m tests.golden.freeze_draws

# Trains the arms of tests/golden/arms.yaml with the code of another commit, with the present code, and
# with the present code resumed at every epoch. Metrics and states must be bit-identical. 3 minutes.
BASE ?= HEAD

same-bits: $(DEV)
	$(BIN)/python -m tests.golden.same_bits --base $(BASE)

# Runs all benches, each in its own process, and writes a table of ratios of costs; takes hours. `python
# -m tests.bench NAME` runs a single one. Wall times need an otherwise idle machine. ARGS=--quick only
# checks, in minutes, that all benches work.
bench: $(DEV)
	$(BIN)/python -m tests.bench $(ARGS)

# Runs a command and prints its progress every few seconds: $(call told,COMMAND).
define told
	$(1) & job=$$!; \
	{ while sleep 8; do echo "installing, $$(du -sm $(VENV) | cut -f 1) MB so far"; done; } & tell=$$!; \
	wait $$job; code=$$?; kill $$tell; exit $$code
endef

# pip installs only files whose sha256 is in the lock file; the package itself is then installed as
# editable. The first lines of a lock file have the command that writes it again, with the versions of
# constraints.txt.
INSTALL := $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check

# The environment for users, and below it the additions for tests. Both are installed again if a pinned
# version or the metadata of the package changes.
$(READY): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "mixsweep needs Python 3.11 or newer"'
	mkdir -p $(VENV)
	$(call told,$(PYTHON) -m venv $(VENV))
	$(call told,$(INSTALL) --require-hashes --requirement requirements.lock)
	$(INSTALL) --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(DEV): $(READY) requirements-dev.lock
	$(call told,$(INSTALL) --require-hashes --requirement requirements-dev.lock)
	touch $@
