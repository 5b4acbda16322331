#include "rng/cuda_fill.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <vector>

#include "core/error.h"
#include "rng/fill.h"
#include "tests/rng/known_answers.h"

/// CPU and GPU give the same bits; skipped, with the reason, where nothing can be drawn on a GPU.
namespace lockstep::rng {
namespace {

class CudaFill : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable_reason(); !reason.empty()) {
      GTEST_SKIP() << "NOT CHECKED: CPU and CUDA give the same bits (" << reason << ")";
    }
  }
};

/// Where a GPU is, this may have been built elsewhere.
std::string source_folder() {
  const char* folder = std::getenv("LOCKSTEP_SOURCE_DIR");
  return folder ? folder : LOCKSTEP_SOURCE_DIR;
}

/// Bytes of `subarray` drawn on the GPU into a background of 0xcd, and the same on the CPU.
void expect_same_bits(ScalarKind kind, const Distribution& distribution, uint64_t seed, uint64_t stream,
                      const Subarray& subarray, std::size_t elements) {
  const auto bytes = elements * static_cast<std::size_t>(size_of(kind));
  std::vector<unsigned char> expected(bytes, 0xcd), drawn(bytes, 0xcd);
  fill(expected.data(), kind, distribution, Key{seed}, stream, subarray);
  cuda_fill_host(drawn.data(), bytes, kind, distribution, Key{seed}, stream, subarray);
  for (std::size_t i = 0; i < elements; ++i) {
    ASSERT_EQ(bits_at(drawn.data(), kind, i), bits_at(expected.data(), kind, i))
        << "element " << i << " of " << elements;
  }
}

TEST_F(CudaFill, KnownAnswers) {
  const auto answers = read_known_answers(source_folder() + "/rng/known_answers.txt");
  for (const auto& a : answers.draws) {
    std::vector<uint64_t> out(a.values.size());
    cuda_fill_host(out.data(), out.size() * sizeof(uint64_t), a.kind, a.distribution, Key{a.seed}, a.stream,
                   Subarray::whole({static_cast<int64_t>(a.values.size())}, a.index));
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      EXPECT_EQ(bits_at(out.data(), a.kind, i), a.values[i]) << "known_answers.txt:" << a.line << " value " << i;
    }
  }
}

TEST_F(CudaFill, AMillionOfEachEqualTheCpu) {
  for (const auto kind : {ScalarKind::kFloat32, ScalarKind::kFloat64, ScalarKind::kBFloat16, ScalarKind::kFloat16}) {
    for (const auto& d : {uniform(-1, 2), normal(0.5, 3), truncated_normal(0, 1, -2, 3), dropout_mask(0.9)}) {
      expect_same_bits(kind, d, 5, 6, Subarray::whole({1'000'000}, 3), 1'000'000);
    }
  }
  expect_same_bits(ScalarKind::kInt64, integers(-5, 1000), 5, 6, Subarray::whole({1'000'000}, 1), 1'000'000);
  expect_same_bits(ScalarKind::kBool, bernoulli(0.3), 5, 6, Subarray::whole({1'000'000}, 1), 1'000'000);
}

TEST_F(CudaFill, StridedBoxesEqualTheCpu) {
  for (const uint64_t base : {uint64_t{0}, (uint64_t{1} << 32) - 100, uint64_t{1} << 60}) {
    for (int64_t start = 0; start < 5; ++start) {
      auto subarray = Subarray::of({7, 11, 13}, {{1, start, start}, {5, 6, 7}}, base);
      subarray.dimensions[2].stride = 2;
      subarray.dimensions[1].stride = 15;
      subarray.dimensions[0].stride = 100;
      expect_same_bits(ScalarKind::kFloat32, normal(), 1, 2, subarray, 512);
      expect_same_bits(ScalarKind::kFloat64, uniform(), 1, 2, subarray, 512);
    }
  }
}

TEST_F(CudaFill, NothingIsWrittenBehindAnEnd) {
  for (uint64_t index = 0; index < 5; ++index)
    for (int64_t count = 1; count < 12; ++count) {
      expect_same_bits(ScalarKind::kFloat32, normal(), 1, 2, Subarray::whole({count}, index), 16);
      expect_same_bits(ScalarKind::kFloat64, uniform(), 1, 2, Subarray::whole({count}, index), 16);
      expect_same_bits(ScalarKind::kBFloat16, uniform(), 1, 2, Subarray::whole({count}, index), 16);
    }
}

TEST_F(CudaFill, EmptyBoxesWriteNothing) {
  expect_same_bits(ScalarKind::kFloat32, normal(), 1, 2, Subarray::of({4, 4}, {{1, 4}, {2, 0}}), 16);
}

TEST(NoCuda, DrawingIsAClearErrorWithoutCuda) {
  if (cuda_unavailable_reason().find("built without") == std::string::npos) GTEST_SKIP() << "built with CUDA";
  EXPECT_THROW(cuda_fill(nullptr, ScalarKind::kFloat32, uniform(), Key{1}, 1, Subarray::whole({1}), nullptr), BadInput);
  EXPECT_THROW(cuda_fill_host(nullptr, 0, ScalarKind::kFloat32, uniform(), Key{1}, 1, Subarray::whole({1})), BadInput);
}

}  // namespace
}  // namespace lockstep::rng
