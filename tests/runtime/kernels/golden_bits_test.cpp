// The bits of canonical sums, of each family of kernels and of random draws are those in tests/golden/. All of them
// come through the op table, on one rank: that other meshes have the same bits is what other tests show.
#include <gtest/gtest.h>

#include "rng/fill.h"
#include "rng/permutation.h"
#include "rng/stream.h"
#include "tests/support/cases/golden_ops.h"
#include "tests/support/golden_lines.h"
#include "tests/support/golden_tensors.h"

namespace lockstep::testing {
namespace {

const char* name_of(c10::ScalarType dtype) {
  return dtype == c10::kFloat ? "float32" : dtype == c10::kDouble ? "float64" : "bfloat16";
}

std::vector<c10::ScalarType> dtypes_of(const GoldenOp& op) {
  if (op.dtypes == GoldenOp::kNarrow) return {c10::kBFloat16};
  if (op.dtypes == GoldenOp::kWide) return {c10::kFloat, c10::kDouble};
  return {c10::kFloat, c10::kDouble, c10::kBFloat16};
}

std::unique_ptr<World> canonical_world(int64_t rounded_levels) {
  World::Options options;
  options.numerics = lockstep::Numerics::kCanonical;
  options.rounded_levels = rounded_levels;
  return simulated_world({{"one", 1}}, options);
}

/// Adds what the op gives for one width.
void run_into(Digester& digester, const GoldenOp& op, int64_t width, c10::ScalarType dtype, const Mesh& mesh) {
  std::vector<at::Tensor> operands;
  for (const auto& sizes : op.operands(width))
    operands.push_back(distribute(golden_numbers(sizes, dtype, operands.size()), Layout::replicated(mesh)));
  for (const auto& result : op.run(operands)) add_to(digester, result);
}

void add_op(GoldenLines& lines, const GoldenOp& op, c10::ScalarType dtype) {
  const auto world = canonical_world(op.rounded_levels);
  const auto& mesh = world->mesh("one=1");
  Digester all;
  for (const int64_t width : op.widths) {
    Digester one;
    run_into(op.by_width ? one : all, op, width, dtype, mesh);
    if (op.by_width) add_line(lines, fmt::format("{}.{}.{}", op.name, name_of(dtype), width), one.result().text());
  }
  if (!op.by_width) add_line(lines, fmt::format("{}.{}", op.name, name_of(dtype)), all.result().text());
}

void add_draws(GoldenLines& lines, const char* name, const rng::Distribution& distribution,
               std::initializer_list<rng::ScalarKind> kinds) {
  constexpr int64_t kCount = 1001;
  for (const auto kind : kinds) {
    std::vector<std::byte> values(static_cast<size_t>(kCount * rng::size_of(kind)));
    rng::fill(values.data(), kind, distribution, rng::Key{17}, 23, rng::Subarray::whole({kCount}, 3));
    add_line(lines, fmt::format("random.{}.{}", name, rng::name_of(kind)), digest(values).text());
  }
}

void add_random(GoldenLines& lines) {
  using enum rng::ScalarKind;
  add_draws(lines, "uniform", rng::uniform(-1, 2), {kFloat32, kFloat64, kBFloat16, kFloat16});
  add_draws(lines, "normal", rng::normal(0.5, 2), {kFloat32, kFloat64, kBFloat16, kFloat16});
  add_draws(lines, "truncated_normal", rng::truncated_normal(0, 1, -2, 3), {kFloat32, kFloat64, kBFloat16, kFloat16});
  add_draws(lines, "dropout", rng::dropout_mask(0.9), {kFloat32, kFloat64, kBFloat16, kFloat16});
  add_draws(lines, "bernoulli", rng::bernoulli(0.3), {kBool});
  add_draws(lines, "integers", rng::integers(-5, 1'000'003), {kInt64});
  for (const uint64_t size : {200, 1001}) {
    const rng::Permutation order(rng::Key{17}, 23, size);
    std::vector<uint64_t> places(size);
    for (uint64_t i = 0; i < size; ++i) places[i] = order(i);
    add_line(lines, fmt::format("random.permutation.{}", size), digest(std::as_bytes(std::span(places))).text());
  }
  add_line(lines, "random.stream", fmt::format("{:016x}", rng::stream_of({3, "layers.1.attention", 2})));
}

GoldenLines kernel_lines() {
  GoldenLines lines;
  for (const auto family : {golden_sums, golden_products, golden_attention, golden_rows, golden_gates, golden_functions,
                            golden_arithmetic, golden_optimizer})
    for (const auto& op : family())
      for (const auto dtype : dtypes_of(op)) add_op(lines, op, dtype);
  add_random(lines);
  return lines;
}

TEST(GoldenBits, OfKernelsSumsAndDraws) {
  const auto complaint = check_golden(LOCKSTEP_SOURCE_DIR, kernel_lines(), "kernels");
  EXPECT_TRUE(complaint.empty()) << complaint;
}

/// The lowest bit of one element of one op's operand is seen, by the name of that op.
TEST(GoldenBits, SeeOneBit) {
  auto numbers = golden_numbers({3, 65}, c10::kFloat, 0);
  const auto digest_of = [&] {
    Digester digester;
    add_to(digester, numbers);
    return digester.result().text();
  };
  const GoldenLines before{{"sums.of_elements.float32", digest_of()}};
  static_cast<uint32_t*>(numbers.mutable_data_ptr())[194] ^= 1;
  const auto difference = golden_difference({{"sums.of_elements.float32", digest_of()}}, before);
  EXPECT_EQ(difference.changed, 1U);
  EXPECT_EQ(difference.list.find("  sums.of_elements.float32: "), 0U);
}

}  // namespace
}  // namespace lockstep::testing
