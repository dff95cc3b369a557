# Swarmkeeper. Two commands do all the set-up on a fresh Debian 12 with Swift:
#
#   make run     installs what is missing, builds, and runs a cluster of three trackers on this machine, to try
#   make test    installs what the tests need, builds, and runs every test
#
# The others are for daily work; `make help` lists them.

SHELL := /bin/bash
CONFIGURATION ?= release
TRACKER := .build/$(CONFIGURATION)/tracker
# Debian's own Python: python3-libtorrent comes for no other.
PYTHON := /usr/bin/python3
# What Debian does not have, apart from the system's Python.
TEST_PYTHON := .build/test-python
DATA ?= data

.PHONY: run serve build test test-builds build-planted-bugs build-mutants unit explore explore-all planted-bugs mutants mutants-sample \
	wasm wasm-planted simulator simulator-planted wasm-test playground system failovers histories sweep interop benchmark benchmark-peers format lint clean help packages test-packages

run: build ## Build, then run a cluster of three trackers to try; it prints what there is to try
	$(TRACKER) demo $(ARGUMENTS)

serve: build ## Build, then run one tracker on UDP and HTTP port 6969; data in ./data
	SWIFT_BACKTRACE=enable=no $(TRACKER) serve --data $(DATA) --http 0.0.0.0:6969 $(ARGUMENTS)

build: packages simulator ## Build the tracker, and the simulator that its page runs
	swift build -c $(CONFIGURATION) --product tracker

# Left out, with a sentence, where the toolchain has no library for wasm32; WITHOUT_SIMULATOR=1 leaves it as it is, and
# saves three minutes where the logic has changed.
simulator:
	$(if $(WITHOUT_SIMULATOR),,@Wasm/build || [ $$? -eq 3 ])

simulator-planted:
	@Wasm/build planted || [ $$? -eq 3 ]

test: test-builds unit explore planted-bugs mutants-sample wasm-test system ## All tests: logic, codecs, simulation, storage, then the real program with real clients

# Compilers optimise a module on one processor, so two of these are built at a time.
test-builds: packages
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=line build-planted-bugs simulator build-mutants simulator-planted

build-planted-bugs:
	swift build -c release --package-path Tests/PlantedBugs

build-mutants:
	Tests/Mutants/build

unit: packages ## The tests in Swift; what fails is said again at the end
	swift build -c $(CONFIGURATION) --build-tests
	set -o pipefail; swift test -c $(CONFIGURATION) --skip-build --disable-xctest 2>&1 | tee .build/unit.log \
		|| { echo; echo "What failed:"; grep -a -A 4 '^✘' .build/unit.log; exit 1; }

explore: build ## Walk over all schedules of small clusters (two minutes)
	$(TRACKER) explore --elections 2 --requests 1
	$(TRACKER) explore --elections 1 --requests 2
	$(TRACKER) explore --elections 1 --requests 1 --restarts 1
	$(TRACKER) explore --elections 1 --requests 2 --restarts 1 --network inOrder
	$(TRACKER) explore --elections 2 --requests 1 --restarts 1 --network inOrder

explore-all: build ## The same for greater bounds (an hour and a half, 20 GB of memory)
	$(TRACKER) explore --elections 2 --requests 2
	$(TRACKER) explore --elections 2 --requests 1 --restarts 1
	$(TRACKER) explore --elections 1 --requests 2 --restarts 1
	for mortal in 1 2 3; do $(TRACKER) explore --elections 2 --requests 2 --restarts 1 --mortal $$mortal \
		--network inOrder --max-states 1000000000 || exit 1; done

planted-bugs: packages build-planted-bugs ## Plant mistakes into the logic; explorer and simulator have to find each (three minutes)
	Tests/PlantedBugs/.build/release/planted-bugs --explorer
	Tests/PlantedBugs/.build/release/planted-bugs

mutants-sample: packages build-mutants ## A hundred mutants of the logic that were noticed: each has to be noticed again (docs/mutants.md)
	$(PYTHON) Tests/Mutants/mutants.py sample $(ARGUMENTS)

mutants: packages ## Try all mutants of the logic, and write docs/mutants.md (hours; goes on where it was interrupted)
	Tests/Mutants/build tests
	$(PYTHON) Tests/Mutants/mutants.py trace
	$(PYTHON) Tests/Mutants/mutants.py run $(ARGUMENTS)
	$(PYTHON) Tests/Mutants/mutants.py report

wasm: ## Compile the simulator for WebAssembly: .build-wasm/simulator.wasm (three minutes; Wasm/README.md)
	Wasm/build

wasm-planted: # The same with mistakes to plant, for tests
	Wasm/build planted

wasm-test: build wasm wasm-planted ## Run that module in Node, and compare with the tracker and the golden hashes
	@scripts/install-packages Wasm/packages.txt
	TRACKER="$(CURDIR)/$(TRACKER)" node --test --test-reporter=tap Wasm/test*.mjs

playground: wasm ## Write the simulator's page for any web server: .build-wasm/playground/ (docs/playground.md)
	@scripts/playground

system: build test-packages ## The tests that run the real program, side by side in namespaces of their own (as root)
	TRACKER="$(CURDIR)/$(TRACKER)" $(PYTHON) Tests/SystemTests/run.py $(ARGUMENTS)

failovers: build test-packages ## Forty masters killed for each policy, over multicast and the embedded broker (as root; ten minutes)
	SWARMKEEPER_FAILOVERS=40 TRACKER="$(CURDIR)/$(TRACKER)" $(PYTHON) Tests/SystemTests/run.py --verbose -k test_policies

histories: build test-packages ## Clients record while trackers are killed, held, cut off, starved; histories are checked (as root; twenty minutes)
	TRACKER="$(CURDIR)/$(TRACKER)" $(PYTHON) -u Tests/SystemTests/histories.py $(ARGUMENTS)

sweep: build ## Fifty thousand seeds of each profile on each ground of the simulator (half a day; goes on where it was interrupted)
	TRACKER="$(CURDIR)/$(TRACKER)" $(PYTHON) scripts/sweep $(ARGUMENTS)

interop: build test-packages ## The peer and the clients that people use: magnet links, many files, 4 GiB, hybrids (as root; half an hour)
	TRACKER="$(CURDIR)/$(TRACKER)" $(PYTHON) Tests/SystemTests/run.py --files 'interop*.py' $(ARGUMENTS)

benchmark-peers: build test-packages ## Compare the peer with libtorrent, Transmission and aria2 (as root; Benchmarks/README.md)
	Benchmarks/peers

benchmark: build ## Compare with opentracker and a bare echo (Benchmarks/README.md)
	Benchmarks/run

packages: ## Debian packages that the build needs
	@scripts/install-packages scripts/build-packages.txt

test-packages: packages ## Packages that the tests need: Debian's, and a few of Python's in .build
	@scripts/install-packages Tests/SystemTests/packages.txt
	@$(MAKE) --silent --no-print-directory $(TEST_PYTHON)/installed

$(TEST_PYTHON)/installed: Tests/SystemTests/requirements.txt
	@echo "Installing Python packages into $(TEST_PYTHON)"
	@$(PYTHON) -m venv --clear $(TEST_PYTHON)
	@$(TEST_PYTHON)/bin/pip install --quiet --disable-pip-version-check --requirement $< && touch $@ \
		|| echo "These cannot be had here, so the two tests that need them are skipped: $$(grep -v '^#' $< | tr '\n' ' ')"

format: ## Rewrite the sources in the project's format
	swift format --in-place --recursive --parallel Package.swift Sources Tests Wasm Benchmarks/Sources Benchmarks/Package.swift

lint: ## Check the format
	swift format lint --strict --recursive --parallel Package.swift Sources Tests Wasm Benchmarks/Sources Benchmarks/Package.swift

clean: ## Remove what was built
	rm -rf .build .build-wasm Benchmarks/.build Tests/PlantedBugs/.build Tests/Mutants/.build

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | column -t -s $$'\t'
