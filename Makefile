# Two commands on a fresh machine: `make quickstart` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.ready-dev

export OMP_NUM_THREADS ?= 1

.PHONY: quickstart answers test units kills smoke faults long soak mutants check style types format theory
.PHONY: golden same-bits bench bench-search docs clusters image

quickstart: $(READY)
	$(BIN)/mixsweep data fetch fashion-mnist
	$(BIN)/mixsweep run quickstart

# The page of answers again: what is missing of its studies is trained (the page has the hours), their
# reports are published, the page is written.
answers: $(READY)
	studies=`$(BIN)/python -m reports.pages.answers --studies` && \
	$(BIN)/mixsweep run $$studies && \
	$(BIN)/python -m reports.pages.archive `for study in $$studies; do echo runs/reports/$$study; done`

test: $(DEV)
	$(MAKE) --jobs=2 --output-sync=target units kills

# The units take the CPU that the kills leave: a kill waits for epochs, and its waits have limits.
# Files in their order: the slow ones, of few tests, would be left to the end, one process alone.
WORKERS := --numprocesses 4 --dist loadfile --no-loadscope-reorder
UNITS := --ignore=tests/faults --ignore=tests/hosts --ignore=tests/smoke $(WORKERS)

units: $(DEV)
	nice -n 5 $(BIN)/python -m pytest tests $(UNITS) -m "not long" -rs

# Launches that are killed, interrupted or find damaged files, in namespaces from which no signal gets out.
NAMESPACE := tests/faults/in_namespace.sh
KILLS := tests/faults/test_drivers.py

kills: $(DEV)
	$(NAMESPACE) $(BIN)/python -m pytest $(KILLS) -m "not long" -rs

# CI runs these two after `make check` and `make test`: whole studies by the commands that a user types,
# and the other faults, of workers, disks, memory, nodes, networks and services.
smoke: $(DEV)
	$(BIN)/python -m pytest tests/smoke --numprocesses 2 --dist load -m "not long" -rs

faults: $(DEV)
	$(NAMESPACE) $(BIN)/python -m pytest tests/faults tests/hosts --ignore=$(KILLS) -m "not long" -rs

# What CI leaves out for its time: every pair of a product, further faults, the README in a clone. An
# hour or two.
LONG := --ignore=tests/faults --ignore=tests/hosts $(WORKERS)

long: $(DEV)
	$(BIN)/python -m pytest tests $(LONG) -m long -rs
	$(BIN)/python -m pytest tests $(LONG) -m "hypothesis and not long" --hypothesis-profile=long
	$(NAMESPACE) $(BIN)/python -m pytest tests/faults -m long -rs

# Whole clusters on hosts that are namespaces, by the commands of the files in cluster/: about ten
# minutes. What they did goes to reports/published/measurements.
clusters: $(DEV)
	PUBLISH=1 $(NAMESPACE) $(BIN)/python -m pytest tests/hosts -m long -rs

# The steps of the Dockerfile in a scratch root, as root on Debian with debootstrap: downloads about
# 3 GB, ten minutes.
image: $(DEV)
	PUBLISH=1 $(BIN)/python -m pytest tests/cluster/test_image.py -m long -rs

# Faults by the hundred and more, hours; figures go to reports/published. Two at a time, since much
# of a launch is waiting; what measures seconds or memory comes after, alone.
SOAK := $(NAMESPACE) $(BIN)/python -m tests.soak
BESIDE := kills-1 kills-2 damage-1 damage-2 mutations images secrets corruption disks forks nodes bits twice endings surroundings closed canaries
ALONE := damage interrupts load sharing outage
soak: $(DEV)
	$(MAKE) --jobs=2 --keep-going $(BESIDE:%=soak-%); beside=$$?; \
	$(MAKE) --keep-going $(ALONE:%=soak-%) && exit $$beside

soak-kills-%: $(DEV)
	$(SOAK).kills --sweeps 10 --kills 100 --minutes 300 --seed $*

# What was seen of cells is kept until the code changes: cut short, it goes on with the others.
soak-damage-%: $(DEV)
	$(SOAK).damage --half $*

soak-mutations: $(DEV)
	$(BIN)/python -m tests.soak.mutations --files 100000

soak-corruption: $(DEV)
	$(SOAK).corruption --corruptions 1000

soak-disks: $(DEV)
	$(SOAK).disks --fillings 50 --launches 3

soak-forks: $(DEV)
	$(SOAK).forks --seeds 5 --epochs 20

soak-load: $(DEV)
	$(SOAK).load --runs 500 --epochs 100

soak-outage: $(DEV)
	$(SOAK).outage --seconds 300 --epochs 3000

soak-%: $(DEV)
	$(SOAK).$*

# Changes 200 tokens of twenty-two modules, one at a time: the tests beside the module must notice 92 %.
# About 10 minutes; what was judged before is kept until the module or its tests change.
mutants: $(DEV)
	$(BIN)/python -m tests.soak.mutants

check: style types

style: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(DEV)
	nice -n 5 $(BIN)/mypy
	nice -n 5 $(BIN)/lint-imports

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The documentation as HTML in docs/_build/html. A warning is an error; nothing is fetched.
docs: $(DEV)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html

# Fills the page of the theory in from what is in runs/; a study without a report there is named in it.
PAGE ?= runs/theory

theory: $(READY)
	$(BIN)/python -m reports.pages.manuscript reports/pages/manuscripts/theory.md --out $(PAGE)

# Adds the defaults of new fields and the keys of new runs, and changes none. Freezes the losses of new
# arms, and of arms whose losses moved; such a move needs its reason in the changelog. 2 minutes.
golden: $(DEV)
	$(BIN)/python -m tests.golden.freeze
	$(BIN)/python -m tests.golden.freeze_keys

# Trains what tests/golden/arms.yaml lists with the code of another commit, with the code here, and
# with the code here resumed at every epoch: metrics and states must be equal bit for bit. 3 minutes.
BASE ?= HEAD

same-bits: $(DEV)
	$(BIN)/python -m tests.golden.same_bits --base $(BASE)

# Costs as ratios, each way in turn; hours, every bench by itself: `python -m tests.bench NAME`. Wall
# times want a machine that does nothing else. With ARGS=--quick it is seen in minutes that all run.
bench: $(DEV)
	$(BIN)/python -m tests.bench $(ARGS)

# Searching against a known optimum, and against plain Ray Tune; minutes.
bench-search: $(DEV)
	$(BIN)/python -m tests.bench.search

# Runs a command and says every few seconds that it goes on: $(call told,COMMAND).
define told
	$(1) & job=$$!; \
	{ while sleep 8; do echo "installing, $$(du -sm $(VENV) | cut -f 1) MB so far"; done; } & tell=$$!; \
	wait $$job; code=$$?; kill $$tell; exit $$code
endef

# pip takes only files of the sums that a lock lists; the package itself is linked in afterwards. A
# lock is made again by the command at its head, in the versions of constraints.txt.
INSTALL := $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check

# Made anew when a pinned version or the package's own metadata changes: what running needs, and what
# testing needs besides.
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
