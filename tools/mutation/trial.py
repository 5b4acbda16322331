"""Runs what has to notice a variant: lockstep verify, then the suites that come to its place."""
import dataclasses
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import threading
import time

SUITE = re.compile(r"\b(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|RC_GTEST_(?:FIXTURE_)?PROP)\(\s*(\w+)\s*,")
FAILED = re.compile(r"\[  FAILED  \] (\S+?)(?:,|\s)")
LEAST_FREE = 8 << 30  # bytes of the disk: who takes more is ended. (Limits of files would end tests with sparse ones.)
# One thread computes, and properties draw the same cases each time.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "NO_COLOR": "1", "RC_PARAMS": "seed=1 noshrink=1"}


class Unusable(Exception):
    """The checks fail without a variant."""


@dataclasses.dataclass
class Outcome:
    status: str  # "passed", "failed", "timeout"
    why: str  # "exit 3", "signal 11"
    output: str
    seconds: float


@dataclasses.dataclass
class Suite:
    binary: str
    name: str
    seconds: float
    keys: set  # of the variants that it comes to


@dataclasses.dataclass
class Verdict:
    verdict: str  # "verify", "tests", "timeout", "survived", "not reached"
    by: str = ""
    seconds: float = 0
    left: int = 0  # suites that there was no time for


def limit_process():
    """A variant may fill memory: it is the first to be ended."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000")


class Trial:
    def __init__(self, workspace, variants, verify, patience, grace, without):
        self.build, self.tree = workspace.build, workspace.tree
        self.folder, self.trace = workspace.folder, workspace.folder / "trace"
        self.memory = workspace.folder / "suites.json"
        self.verify, self.without = verify, without  # tests that are left out
        self.patience, self.grace = patience, grace  # a check may take patience * its usual time + grace
        self.by_number = {variant.number: variant.key for variant in variants}
        self.verify_keys, self.verify_seconds, self.suites = set(), 0.0, []

    def run(self, command, limit, **variables):
        """Runs it in an empty folder, and ends its processes after `limit` seconds."""
        scratch = self.folder / f"scratch-{threading.get_ident()}"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        environment = {**os.environ, **ENVIRONMENT, "TMPDIR": str(scratch), "BUILD": str(self.build), **variables}
        said, start = scratch.with_suffix(".txt"), time.monotonic()
        with open(said, "wb") as file:
            process = subprocess.Popen(command, shell=isinstance(command, str), cwd=scratch, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                       start_new_session=True, preexec_fn=limit_process)
            code = wait(process, limit, scratch)
        why = "" if code is None else how_it_ended(code)
        status = "timeout" if code is None else "passed" if code == 0 else "failed"
        outcome = Outcome(status, why, tail(said), time.monotonic() - start)
        shutil.rmtree(scratch, ignore_errors=True)
        said.unlink()
        return outcome

    def traced(self, command, limit):
        """Without a variant; also the keys of those that it comes to."""
        self.trace.write_bytes(bytes(max(self.by_number, default=0) + 1))
        outcome = self.run(command, limit, LOCKSTEP_MUTANT_TRACE=str(self.trace))
        return outcome, {self.by_number[at] for at, byte in enumerate(self.trace.read_bytes())
                         if byte and at in self.by_number}

    def try_verify(self):
        outcome, self.verify_keys = self.traced(self.verify, 1800)
        self.verify_seconds = outcome.seconds
        if outcome.status != "passed":
            raise Unusable(f"verify fails without a variant ({outcome.why or outcome.status}):\n"
                           f"{outcome.output[-1500:]}")

    def try_suites(self, binaries, say):
        """Runs every suite alone, once for each build, and remembers what it comes to."""
        memory = json.loads(self.memory.read_text()) if self.memory.is_file() else {}
        bad = []
        for binary in binaries:
            known = self.known_suites(memory, binary, binaries)
            for name in self.list_suites(binary):
                say(f"{binary} {name}")
                found = known.get(name) or self.try_suite(binary, name)
                if not found:
                    bad.append(name)
                    continue
                if name not in known:
                    known[name] = found
                    self.memory.write_text(json.dumps(memory))
                self.suites.append(Suite(binary, name, found[0], set(found[1])))
        if bad:
            raise Unusable(f"{len(bad)} suites fail without a variant: {' '.join(bad)} (--without leaves tests out)")

    def known_suites(self, memory, binary, binaries):
        """What is remembered of a binary, by suite; nothing once any was built again: tests start programs."""
        programs = [self.build / name for name in (*binaries, "lockstep", "lockstep-engine")]
        state = str([path.stat().st_mtime_ns for path in programs if path.is_file()])
        if memory.get(binary, {}).get("state") != state:
            memory[binary] = {"state": state, "suites": {}}
        return memory[binary]["suites"]

    def try_suite(self, binary, name):
        """Its seconds and what it comes to; None if it fails twice."""
        for _ in range(2):
            outcome, keys = self.traced([self.build / binary, selection([name], self.without), "--gtest_brief=1"], 3600)
            if outcome.status == "passed":
                return outcome.seconds, sorted(keys)
        return None

    def list_suites(self, binary):
        chosen = f"--gtest_filter=*{excluded(self.without)}"
        outcome = self.run([self.build / binary, "--gtest_list_tests", chosen], 300)
        if outcome.status != "passed":
            raise Unusable(f"{binary} does not list its tests: {outcome.output[-500:]}")
        lines = [line.partition("#")[0].rstrip() for line in outcome.output.splitlines()]
        return [line[:-1] for line in lines if line.endswith(".") and not line.startswith((" ", "DISABLED_"))]

    def limit(self, usual):
        return self.grace + self.patience * usual

    def judge(self, variant, minutes):
        start = time.monotonic()
        verdict = self.judge_by_verify(variant) if variant.key in self.verify_keys else None
        verdict = verdict or self.judge_by_suites(variant, 60 * minutes)
        verdict.seconds = round(time.monotonic() - start, 1)
        return verdict

    def judge_by_verify(self, variant):
        """None if it passes."""
        outcome = self.run(self.verify, self.limit(self.verify_seconds), LOCKSTEP_MUTANT=str(variant.number))
        if outcome.status == "passed":
            return None
        return Verdict("timeout", "verify") if outcome.status == "timeout" else Verdict("verify", outcome.why)

    def judge_by_suites(self, variant, seconds):
        reaching = [suite for suite in self.suites if variant.key in suite.keys]
        if not reaching:
            return Verdict("survived" if variant.key in self.verify_keys else "not reached")
        near = near_suites(self.tree, variant.file)
        reaching.sort(key=lambda suite: (near.isdisjoint(suite.name.split("/")), suite.seconds))
        chosen = within(reaching, seconds)
        first = [suite for suite in chosen if not near.isdisjoint(suite.name.split("/"))]
        for suites in groups(first) + groups([suite for suite in chosen if suite not in first]):
            found = self.judge_by_group(variant, suites)
            if found:
                return found
        return Verdict("survived", left=len(reaching) - len(chosen))

    def judge_by_group(self, variant, suites):
        """Suites of one binary, in one process; None if they pass."""
        binary, limit = suites[0].binary, self.limit(sum(suite.seconds for suite in suites))
        command = [self.build / binary, "--gtest_brief=1", "--gtest_fail_fast",
                   selection([suite.name for suite in suites], self.without)]
        outcome = self.run(command, limit, LOCKSTEP_MUTANT=str(variant.number))
        if outcome.status == "passed":
            return None
        name = pathlib.PurePath(binary).name
        failed = FAILED.search(outcome.output)
        if outcome.status == "timeout":
            return Verdict("timeout", name)
        return Verdict("tests", f"{name} {failed.group(1)}" if failed else f"{name} {outcome.why}")


def selection(suites, without):
    return f"--gtest_filter={':'.join(f'{name}.*' for name in suites)}{excluded(without)}"


def excluded(without):
    return f"-{without}" if without else ""


def wait(process, limit, folder):
    """The exit status, None after the limit or where the folder's disk is full; nothing of its group goes on."""
    end = time.monotonic() + limit
    try:
        while time.monotonic() < end and shutil.disk_usage(folder).free > LEAST_FREE:
            try:
                return process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                pass
        return None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def how_it_ended(code):
    """Shells say 128 and more of a signal."""
    number = -code if code < 0 else code - 128
    return f"signal {number}" if number > 0 else f"exit {code}"


def tail(path, most=1 << 20):
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - most))
        return file.read().decode(errors="replace")


def near_suites(tree, file):
    """Names of the suites that the tests of the file's folder define."""
    folder = tree / "tests" / os.path.dirname(file)
    return {name for path in folder.glob("*_test.cpp") for name in SUITE.findall(path.read_text())}


def within(suites, seconds):
    """The first of them that take no longer together; one at least."""
    total, chosen = 0.0, []
    for suite in suites:
        total += suite.seconds
        if chosen and total > seconds:
            break
        chosen.append(suite)
    return chosen


def groups(suites):
    """Those of each binary, the shortest group first."""
    binaries = {}
    for suite in suites:
        binaries.setdefault(suite.binary, []).append(suite)
    return sorted(binaries.values(), key=lambda group: sum(suite.seconds for suite in group))
