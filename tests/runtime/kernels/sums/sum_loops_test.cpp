// Ordered sums and table gradients give their oracles' bits on any operands; broken on purpose they do not.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/cases/sum_cases.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/mutants.h"

namespace lockstep::testing {
namespace {

using kernels::loops::TableGradient;

template <class T>
void sums_equal_oracles(InstructionSet set) {
  for (const bool rows : {true, false})
    sum_equals_oracle<T>(
        rows, [&](const auto& o, T* out) { kernels::loops::ordered_sum<T>(o.sum, o.x, out, set); }, plain_sum<T>);
  sum_equals_oracle<T>(
      true, [&](const auto& o, T* out) { kernels::loops::ordered_exponential_sum<T>(o.sum, o.x, o.shift, out, set); },
      plain_exponentials<T>);
  sum_equals_oracle<T>(
      false, [&](const auto& o, T* out) { kernels::loops::ordered_norm_gradient<T>(o.sum, o.g, o.x, o.r, out, set); },
      plain_norm_gradient<T>);
}

/// A fault in the order of a table's sums shows where a row has many tokens: in few cases.
constexpr int kTableCases = 1500;

template <class T>
void tables_equal_oracle(InstructionSet set) {
  table_equals_oracle<T>([&](const TableGradient& shape, const int64_t* tokens, const T* gradient, T* out) {
    kernels::loops::table_gradient<T>(shape, tokens, gradient, out, set);
  });
}

class SumLoops : public OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, SumLoops, every_set(), set_name);

TEST_P(SumLoops, GiveTheOraclesBitsInSinglePrecision) {
  expect_holds([] { sums_equal_oracles<float>(GetParam()); });
}
TEST_P(SumLoops, GiveTheOraclesBitsInDoublePrecision) {
  expect_holds([] { sums_equal_oracles<double>(GetParam()); });
}

TEST_P(SumLoops, GiveTheOraclesTablesInSinglePrecision) {
  expect_holds([] { tables_equal_oracle<float>(GetParam()); }, kTableCases);
}
TEST_P(SumLoops, GiveTheOraclesTablesInDoublePrecision) {
  expect_holds([] { tables_equal_oracle<double>(GetParam()); }, kTableCases);
}

/// Rows of one leaf to 64, all of them and without the first or the last; 16 are added at once.
TEST_P(SumLoops, GiveTheOraclesBitsAboutSixteenRows) {
  for (const int64_t size : {1, 15, 17, 33, 64, 69, 96, 200, 333, 512, 1000, 2048})
    for (const int64_t outer : {15, 16, 17, 33}) {
      const auto tree = SumTree::over_elements(size);
      const int64_t leaf = tree.leaf, last = (tree.leaf_count() - 1) * leaf;
      for (const auto& [from, to] :
           {std::pair(int64_t{0}, size), std::pair(std::min(leaf, last), size), std::pair(int64_t{0}, last)}) {
        const SumCase<float> c({tree, from, outer, to - from, 1}, Numbers::kSpecial, 5);
        const auto ours =
            c.run([&](const auto& o, float* out) { kernels::loops::ordered_sum<float>(o.sum, o.x, out, GetParam()); });
        EXPECT_TRUE(same_numbers(ours, c.run(plain_sum<float>)))
            << outer << " rows, " << from << " to " << to << " of " << size;
      }
    }
}

// Table gradients with faults.

using Table = void (*)(const TableGradient&, const int64_t*, const float*, float*);

void one_chain(const TableGradient& shape, const int64_t* tokens, const float* gradient, float* out) {
  for (const auto& node : cover(shape.samples, shape.first_sample, shape.sample_count))
    for (int64_t row = 0; row < shape.rows; ++row, out += shape.width) {
      std::fill_n(out, shape.width, 0.0f);
      const auto [start, end] = elements_of(shape.samples, node);
      for (int64_t p = (start - shape.first_sample) * shape.length;
           p < std::min((end - shape.first_sample) * shape.length, shape.count); ++p)
        for (int64_t c = 0; c < shape.width && tokens[p] == row + shape.first_row; ++c)
          out[c] += gradient[p * shape.width + c];
    }
}
/// Positions and samples are one tree.
void one_tree(const TableGradient& shape, const int64_t* tokens, const float* gradient, float* out) {
  auto flat = shape;
  const bool whole = shape.sample_count == shape.samples.size && shape.count == shape.sample_count * shape.length;
  if (whole && shape.count > 0) {
    flat.samples = SumTree::over_samples(1);
    flat.sample_count = 1;
    flat.length = shape.count;
  }
  kernels::loops::table_gradient<float>(flat, tokens, gradient, out);
}
void rows_one_further(const TableGradient& shape, const int64_t* tokens, const float* gradient, float* out) {
  auto moved = shape;
  ++moved.first_row;
  kernels::loops::table_gradient<float>(moved, tokens, gradient, out);
}
void last_position_missing(const TableGradient& shape, const int64_t* tokens, const float* gradient, float* out) {
  auto shorter = shape;
  shorter.count = std::max<int64_t>(shape.count - 1, 0);
  kernels::loops::table_gradient<float>(shorter, tokens, gradient, out);
}
/// One node per rank, the tree over the samples that are here. (Where a rank has one node that is the same.)
void one_node_per_rank(const TableGradient& shape, const int64_t* tokens, const float* gradient, float* out) {
  auto local = shape;
  local.samples = SumTree::over_samples(shape.sample_count);
  local.first_sample = 0;
  const auto nodes = cover(shape.samples, shape.first_sample, shape.sample_count).size();
  std::fill_n(out, static_cast<int64_t>(nodes) * shape.rows * shape.width, 0.0f);
  if (nodes > 0) kernels::loops::table_gradient<float>(local, tokens, gradient, out);
}
void absent_rows_kept(const TableGradient& shape, const int64_t* tokens, const float* gradient, float* out) {
  kernels::loops::table_gradient<float>(shape, tokens, gradient, out);
  for (int64_t row = 0; row < shape.rows; ++row)
    if (std::find(tokens, tokens + shape.count, row + shape.first_row) == tokens + shape.count)
      for (int64_t c = 0; c < shape.width && shape.sample_count > 0; ++c) out[row * shape.width + c] = -0.0f;
}

constexpr std::pair<const char*, Table> kTableMutants[] = {
    {"one chain", one_chain},
    {"positions and samples in one tree", one_tree},
    {"rows one further", rows_one_further},
    {"the last position missing", last_position_missing},
    {"one node per rank", one_node_per_rank},
    {"-0 where a row is absent", absent_rows_kept},
};

TEST(TableMutants, AreNoticed) {
  for (const auto& mutant : kTableMutants)
    expect_noticed(mutant.first, kTableCases, [&] { table_equals_oracle<float>(mutant.second); });
}

}  // namespace
}  // namespace lockstep::testing
