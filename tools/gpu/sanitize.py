"""Part 2: compute-sanitizer over Lockstep's own kernels, and over one small training step."""
import shutil

from gpu.check import Failed

# What, tool, binary, arguments, how many tests run at least. A sanitizer slows a kernel down a hundredfold: small tests
# only. Attention is LibTorch's.
FILLS = ["--gtest_filter=CudaFill.KnownAnswers:CudaFill.StridedBoxes*:CudaFill.Nothing*:CudaFill.Empty*"]
KERNELS = ["--gtest_filter=*/GpuKernels.*:*/GpuAdamw.*:*/GpuFloat8Products.TakeTheCpusCodes/*:*/GpuFloat8Products.OfRows*:"
           "GpuRounding.*:GpuDigest.OfABox*:-*.Attention/*:*.RepeatTheirBits/*"]
CANONICAL = ["--gtest_filter=Gpu/CanonicalSums.*:Gpu/CanonicalRows.*:Gpu/CanonicalLowPrecision.*:Gpu/CanonicalAttention.*:"
             "Gpu/CanonicalProducts.OfParts*:Gpu/CanonicalProducts.OfBatches*:Gpu/CanonicalProducts.OfSamples*"]
DIGESTS = ["--gtest_filter=DeviceReader.OnAGpu*"]
TRAINING = ["--gtest_filter=GpuTraining.IsTheCpus*"]
CHECKS = [("fills", "memcheck", "test_rng", FILLS, 4), ("fills", "racecheck", "test_rng", FILLS, 4),
          ("kernels", "memcheck", "test_trainer", KERNELS, 19), ("kernels", "racecheck", "test_trainer", KERNELS, 19),
          *(("canonical", tool, "test_trainer", CANONICAL, 56) for tool in ("memcheck", "racecheck", "synccheck")),
          ("digests", "memcheck", "test_trainer", DIGESTS, 2), ("digests", "racecheck", "test_trainer", DIGESTS, 2),
          ("digests", "synccheck", "test_trainer", DIGESTS, 2), ("training", "memcheck", "test_trainer", TRAINING, 1)]


def run(check):
    if check.trial or check.device == "cpu":
        return check.say("  not here: there is no GPU; what would run:\n" + "\n".join(
            f"    compute-sanitizer --tool {tool} {binary} {' '.join(words)}" for _, tool, binary, words, _ in CHECKS))
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if not sanitizer:
        raise Failed("compute-sanitizer is not here (it comes with the CUDA toolkit)")
    for what, tool, binary, words, least in CHECKS:
        command = [sanitizer, "--tool", tool, "--error-exitcode", "99", check.binary(binary), *words]
        done = check.run(f"{tool}-{what}", command, limit=300)
        ran = done.stdout.count("[       OK ]")
        check.require("NOT CHECKED" not in done.stdout and ran >= least,
                      f"{tool} of {what}: no errors in {ran} tests (at least {least})")
