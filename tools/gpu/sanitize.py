"""Part 2: compute-sanitizer over Lockstep's own kernels, and over one small training step."""
import shutil

from gpu.check import Failed

# What, tool, binary, arguments. A sanitizer slows a kernel down a hundredfold: small tests only.
FILLS = ["--gtest_filter=CudaFill.KnownAnswers:CudaFill.StridedBoxes*:CudaFill.Empty*"]
DIGESTS = ["--gtest_filter=DeviceReader.OnAGpu*"]
KERNELS = ["--gtest_filter=*/GpuKernels.[NCSR]*:*/GpuAdamw.*:-*Bits*"]
TRAINING = ["--gtest_filter=GpuTraining.IsTheCpus*"]
CHECKS = [("fills", "memcheck", "test_rng", FILLS), ("fills", "racecheck", "test_rng", FILLS),
          ("kernels", "memcheck", "test_trainer", KERNELS), ("kernels", "racecheck", "test_trainer", KERNELS),
          ("digests", "memcheck", "test_trainer", DIGESTS), ("digests", "racecheck", "test_trainer", DIGESTS),
          ("digests", "synccheck", "test_trainer", DIGESTS), ("training", "memcheck", "test_trainer", TRAINING)]


def run(check):
    if check.trial or check.device == "cpu":
        return check.say("  not here: there is no GPU; what would run:\n" + "\n".join(
            f"    compute-sanitizer --tool {tool} {binary} {' '.join(words)}" for _, tool, binary, words in CHECKS))
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if not sanitizer:
        raise Failed("compute-sanitizer is not here (it comes with the CUDA toolkit)")
    for what, tool, binary, words in CHECKS:
        command = [sanitizer, "--tool", tool, "--error-exitcode", "99", check.binary(binary), *words]
        done = check.run(f"{tool}-{what}", command, limit=300)
        check.require("NOT CHECKED" not in done.stdout and "[       OK ]" in done.stdout, f"{tool} of {what}: no errors")
