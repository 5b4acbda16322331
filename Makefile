# make demo    train the demo job on a simulated 2 x 2 mesh and check every step against one device
# make test    build everything, run all tests; ends in "N passed, N failed"
# make bench-peers   measure beside PyTorch and torchtitan, and write README's table (20 minutes; 5 GB into .python)
# make bench-scale   measure 1 to 8 processes and 1 to 512 simulated ranks, and write docs/scale.md's table and picture
# make opinfo   PyTorch's own samples of its ops on random meshes (SLICE=1/4: a fourth of them), and docs/opinfo.md's table
# make bench   measure against plain LibTorch            make soak   hours: 50 to 100 times the cases, all of sanitizers and lint
# make format  rewrite the C++ files as CI wants them    make lint   clang-tidy over what differs from HEAD (ALL=1: all)
# make golden  write the golden bits of a new numerics version (docs/numerics.md)
# make setup   install what is missing (tools/setup)     make build  compile
# Each target does what it needs first. Another build: make test PRESET=asan (dev, release, asan, tsan).
PRESET ?= release
BUILD := build/$(PRESET)
export OMP_NUM_THREADS ?= 1
# Threads that wait do not spin: on busy cores that would cost tests of several threads tenfold.
export OMP_WAIT_POLICY ?= passive
# ccache takes what a file includes from the compiler: without a run of the preprocessor before it a build from nothing
# takes a fifth less (4.6 s to 3.6 s of a core for a test's source).
export CCACHE_DEPEND ?= 1

.PHONY: demo test bench bench-peers bench-scale opinfo soak golden format lint setup build configure refuse_reproduce
.DEFAULT_GOAL := build

demo: configure
	@cmake --build $(BUILD) --target lockstep lockstep_engine
	$(BUILD)/lockstep train jobs/demo.toml --verify

test: refuse_reproduce build
	@python3 tools/test_summary.py $(BUILD) $(foreach step,$(STEPS),--step $(step))

bench: configure
	@cmake --build $(BUILD) --target lockstep lockstep_engine
	$(BUILD)/lockstep bench rng
	$(BUILD)/lockstep bench dispatch
	$(BUILD)/lockstep bench step

# Waiting threads are as PyTorch's users have them.
bench-peers: configure
	tools/python_env
	@cmake --build $(BUILD) --target lockstep lockstep_engine
	@mkdir -p $(BUILD)/results
	env -u OMP_WAIT_POLICY $(BUILD)/lockstep bench peers --json $(BUILD)/results/peers.json
	python3 tools/bench/peers/peers_page.py $(BUILD)/results/peers.json

bench-scale: configure
	@cmake --build $(BUILD) --target lockstep lockstep_engine
	@mkdir -p $(BUILD)/results
	$(BUILD)/lockstep bench scale --json $(BUILD)/results/scale.json
	python3 tools/bench/peers/scale_page.py $(BUILD)/results/scale.json

SLICE ?= 1/1
opinfo: configure
	tools/python_env
	@cmake --build $(BUILD) --target lockstep_python
	@mkdir -p $(BUILD)/results
	LOCKSTEP_LIBRARY=$(BUILD)/liblockstep_python.so .python/bin/python3 tools/opinfo/opinfo.py --slice $(SLICE) \
	  --json $(BUILD)/results/opinfo.json --page docs/opinfo.md

# Hours. The steps can be run one by one.
soak: refuse_reproduce build
	LOCKSTEP_SOAK=1 $(BUILD)/tests/test_runtime --gtest_filter='Rows/*' --gtest_brief=1
	$(BUILD)/lockstep fuzz ops --seconds 1800 --record tests/rule_cases.json
	for kind in programs layouts steps; do $(BUILD)/lockstep fuzz $$kind --seconds 900 || exit; done
	LOCKSTEP_SOAK=1 $(BUILD)/tests/test_trainer --gtest_filter='*Bitwise*:Wrong*' --gtest_brief=1
	LOCKSTEP_SOAK=1 $(BUILD)/tests/test_tools --gtest_filter='Signals*:WrongInputs*:Kills*' --gtest_brief=1
	LOCKSTEP_SOAK=1 $(BUILD)/tests/test_replay --gtest_brief=1
	LOCKSTEP_SOAK=1 $(BUILD)/tests/test_core --gtest_brief=1
	LOCKSTEP_SOAK=1 $(BUILD)/tests/test_runtime --gtest_filter='FaultSeeds*' --gtest_brief=1
	LOCKSTEP_SOAK_PROGRAMS=1000000 $(BUILD)/tests/test_runtime --gtest_filter='Programs*' --gtest_brief=1
	tools/mutants $(BUILD)
	tools/mutants --fuzz $(BUILD)
	tools/sanitized --all
	tools/lint $(BUILD) --all
	@RC_PARAMS="max_success=10000 $(RC_PARAMS)" python3 tools/test_summary.py $(BUILD) --timeout 14400

golden: configure
	@cmake --build $(BUILD) --target test_runtime test_trainer
	LOCKSTEP_WRITE_GOLDEN=1 $(BUILD)/tests/test_runtime --gtest_filter='GoldenBits*' --gtest_brief=1
	LOCKSTEP_WRITE_GOLDEN=1 $(BUILD)/tests/test_trainer --gtest_filter='GoldenBits*' --gtest_brief=1

format: setup
	@tools/check_format --fix

lint: configure
	@cmake --build $(BUILD) --target lockstep
	@tools/lint $(BUILD) $(if $(ALL),--all)

setup:
	@tools/setup

# Ninja reconfigures by itself when a CMake file changes; only the presets need this rule.
configure: setup
	@[ $(BUILD)/build.ninja -nt CMakePresets.json ] || cmake --preset $(PRESET)

build: configure
	@cmake --build $(BUILD)

# With reproduce= RapidCheck passes, unrun, every property that the string does not name.
refuse_reproduce:
	@case "$(RC_PARAMS)" in *reproduce=*) \
	  echo "make: RC_PARAMS holds reproduce=, which would skip most properties. Run the one test binary instead." >&2; exit 2;; esac
