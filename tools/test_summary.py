#!/usr/bin/env python3
"""Runs the tests of a build folder and ends in one line, "N passed, N failed" (", N skipped" if there are any).

Failures print their messages as they come. A suite that crashes, runs out of time or leaves no result file is a
failure of its own name. Exit status 0 only if nothing failed.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml


class Suite:
    """Counts of one ctest test: a GoogleTest binary, or a script that counts as one."""

    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, [], []

    def line(self):
        text = f"{self.name:<24} {self.passed:>5} passed"
        text += f"  {len(self.failed):>3} failed" if self.failed else ""
        return text + (f"  {len(self.skipped):>3} skipped" if self.skipped else "")


def list_tests(build):
    """Name and command of every test that ctest knows."""
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True)
    return [(test["name"], test.get("command", [])) for test in json.loads(listing.stdout)["tests"]]


def result_file(command):
    """The file that a GoogleTest command writes its results to, or None."""
    prefix = "--gtest_output=json:"
    return next((pathlib.Path(word[len(prefix):]) for word in command if word.startswith(prefix)), None)


def run_tests(build, report, timeout):
    jobs = os.environ.get("CTEST_PARALLEL_LEVEL", str(os.cpu_count()))
    subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", "--output-junit", report, "-j", jobs,
                    "--timeout", str(timeout)])


def outcomes(report):
    """What ctest says of each test: "run" is a pass; "fail" and "notrun" are not."""
    return {case.get("name"): case.get("status") for case in xml.parse(report).getroot().iter("testcase")}


def count_cases(suite, results):
    for group in results["testsuites"]:
        for case in group["testsuite"]:
            name = f"{suite.name}: {group['name']}.{case['name']}"
            if case.get("failures"):
                suite.failed.append(name)
            elif case["result"] == "SKIPPED" or case["status"] == "NOTRUN":
                suite.skipped.append(name)
            else:
                suite.passed += 1


def summarise(name, command, outcome):
    suite = Suite(name)
    results = result_file(command)
    if results and results.is_file():
        try:
            count_cases(suite, json.loads(results.read_text()))
        except (ValueError, KeyError):
            suite.failed.append(f"{name} (its result file cannot be read)")
    elif results:
        suite.failed.append(f"{name} (the suite crashed, hung or was not built)")
    elif outcome == "run":
        suite.passed = 1
    if outcome != "run" and not suite.failed:
        suite.failed.append(f"{name} (the suite exited with an error)" if results else name)
    return suite


def step(text):
    """A check that ran before the tests: "format=0" passed, "lint=77" found nothing that it could check."""
    name, _, status = text.partition("=")
    suite = Suite(name)
    if status == "0":
        suite.passed = 1
    elif status == "77":
        suite.skipped.append(name)
    else:
        suite.failed.append(name)
    return suite


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="build folder")
    parser.add_argument("--step", action="append", default=[], help="NAME=EXIT_STATUS of an earlier check")
    parser.add_argument("--timeout", type=int, default=1800, help="seconds per suite")
    options = parser.parse_args()

    results = pathlib.Path(options.build).resolve() / "results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir()
    tests = list_tests(options.build)
    report = results / "ctest.xml"
    run_tests(options.build, report, options.timeout)
    seen = outcomes(report) if report.is_file() else {}

    suites = [step(text) for text in options.step] + [summarise(n, c, seen.get(n)) for n, c in tests]
    if not tests:
        suites.append(step("no tests were built=1"))
    failed = [name for suite in suites for name in suite.failed]
    skipped = [name for suite in suites for name in suite.skipped]
    print()
    for suite in suites:
        print(suite.line())
    for name in skipped:
        print(f"skipped: {name}")
    for name in failed:
        print(f"FAILED: {name}")
    line = f"{sum(suite.passed for suite in suites)} passed, {len(failed)} failed"
    line += f", {len(skipped)} skipped" if skipped else ""
    (results / "summary.txt").write_text(line + "\n")
    print(line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
