"""Part 1: the tests that need a GPU. One that is skipped there, or a filter that names none, is a failure."""
import json
import re

from gpu.check import Failed

# Binary, tests, and how many of them run at least where there is a GPU.
OF_TRAINER = ("GpuRounding.*:GpuRunCheck.*:*/GpuKernels.*:*/GpuAdamw.*:*/GpuFloat8Products.*:*/GpuRangeChecks*:*/GpuOffload*:GpuTraining.*:GpuDigest.*:DeviceReader.*:ReplayDevice.*:"
              "Gpu/Canonical*:*/GpuCanonical*")
SUITES = [("test_rng", "CudaFill.*", 5), ("test_trainer", OF_TRAINER, 145)]
TRIED = [("test_pretend_gpu", "CudaFill.KnownAnswers:GpuTraining.*", 3)]  # on the GPU that host memory plays
WITHOUT = [("test_rng", "CudaFill.*", 0), ("test_trainer", OF_TRAINER, 5)]


def outcomes(path):
    """The tests of a GoogleTest result file: names of those that ran, of those that were skipped."""
    ran, skipped = [], []
    for suite in json.loads(path.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            (skipped if case["result"] == "SKIPPED" else ran).append(f"{suite['name']}.{case['name']}")
    return ran, skipped


def check_suite(check, binary, tests, least):
    path = check.out / f"{binary}.json"
    path.unlink(missing_ok=True)
    done = check.run(binary, [check.binary(binary), f"--gtest_filter={tests}", f"--gtest_output=json:{path}"])
    ran, skipped = outcomes(path)
    unchecked = re.findall(r"^NOT CHECKED: .*", done.stdout, re.MULTILINE)
    if check.device == "cuda" and unchecked:
        raise Failed(f"{binary}: {len(unchecked)} tests were skipped: {unchecked[0]}")
    check.require(len(ran) >= least, f"{binary}: {len(ran)} tests ran and passed (at least {least}), "
                                       f"{len(skipped)} are for machines without a GPU" if not unchecked else
                                       f"{binary}: {len(ran)} tests passed, {len(skipped)} need a GPU")


def run(check):
    chosen = WITHOUT if check.device == "cpu" else TRIED if check.trial else SUITES
    for suite in chosen:
        check_suite(check, *suite)
