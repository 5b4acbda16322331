#include "models/division.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "models/families/llama.h"

namespace lockstep::models {
namespace {

/// Groups of 2 + 1 rows: a0 a1 b0 | a2 a3 b1 | a4 a5 b2.
Division three_groups() { return {{9, 4}, {{"a", 2, {}}, {"b", 1, {}}}}; }

bool operator==(const PartRows& x, const PartRows& y) {
  return x.row == y.row && x.part_row == y.part_row && x.count == y.count;
}

TEST(Division, FindsTheRowsOfAPart) {
  const auto division = three_groups();
  EXPECT_EQ(division.sizes_of(0), (std::vector<int64_t>{6, 4}));
  EXPECT_EQ(division.sizes_of(1), (std::vector<int64_t>{3, 4}));
  const auto a = division.rows_of(0, 1, 4);  // a1 b0 a2 a3
  ASSERT_EQ(a.size(), 2u);
  EXPECT_TRUE(a[0] == (PartRows{1, 1, 1}));
  EXPECT_TRUE(a[1] == (PartRows{3, 2, 2}));
  const auto b = division.rows_of(1, 1, 4);
  ASSERT_EQ(b.size(), 1u);
  EXPECT_TRUE(b[0] == (PartRows{2, 0, 1}));
  EXPECT_TRUE(division.rows_of(1, 3, 2).empty());
  EXPECT_TRUE(division.rows_of(0, 0, 0).empty());
}

RC_GTEST_PROP(Division, EveryRowBelongsToOnePartOnce, ()) {
  std::vector<Part> parts;
  int64_t group = 0;
  for (auto count = *rc::gen::inRange(1, 4); count > 0; --count) {
    parts.push_back({std::string(1, static_cast<char>('a' + count)), *rc::gen::inRange<int64_t>(1, 4), {}});
    group += parts.back().rows;
  }
  const auto rows = group * *rc::gen::inRange<int64_t>(0, 4);
  const Division division({rows, 2}, parts);
  const auto first = *rc::gen::inRange<int64_t>(0, rows + 1), count = *rc::gen::inRange<int64_t>(0, rows - first + 1);
  std::vector<int> owners(static_cast<size_t>(rows), 0);
  for (size_t part = 0; part < parts.size(); ++part) {
    int64_t next = -1;
    for (const auto& run : division.rows_of(part, first, count)) {
      RC_ASSERT(next < 0 || run.part_row == next);  // without holes
      next = run.part_row + run.count;
      RC_ASSERT(next <= division.sizes_of(part)[0]);
      for (int64_t r = 0; r < run.count; ++r) ++owners[static_cast<size_t>(run.row + r)];
    }
  }
  for (int64_t row = 0; row < rows; ++row)
    RC_ASSERT(owners[static_cast<size_t>(row)] == (row >= first && row < first + count ? 1 : 0));
}

TEST(Division, RefusesRowsThatAreNoWholeGroups) {
  EXPECT_THROW((Division{{8, 4}, {{"a", 2, {}}, {"b", 1, {}}}}), InternalError);
}

/// torchtitan's names and initial distributions (its llama3 model, init_weights).
TEST(Llama, IsDrawnAndStoredAsTorchtitanDoes) {
  LlamaOptions options;
  options.layers = 2;
  const Llama model(options);
  std::map<std::string, double> deviations;
  std::map<std::string, std::vector<int64_t>> sizes;
  for (const auto* parameter : model.parameters())
    for (size_t part = 0; part < parameter->division().parts().size(); ++part) {
      const auto& [name, rows, initial] = parameter->division().parts()[part];
      deviations[name] = initial.is_constant ? 0 : initial.distribution.deviation;
      sizes[name] = parameter->division().sizes_of(part);
    }
  std::map<std::string, double> expected{{"tok_embeddings.weight", 1}, {"norm.weight", 0}, {"output.weight", 1 / 16.0}};
  for (const int layer : {0, 1}) {
    const auto path = fmt::format("layers.{}.", layer);
    const double later = 0.02 / std::sqrt(2.0 * (layer + 1));
    for (const char* name : {"attention_norm", "ffn_norm"}) expected[path + name + ".weight"] = 0;
    for (const char* name : {"attention.wq", "attention.wk", "attention.wv", "feed_forward.w1"})
      expected[path + name + ".weight"] = 0.02;
    for (const char* name : {"attention.wo", "feed_forward.w2", "feed_forward.w3"})
      expected[path + name + ".weight"] = later;
  }
  EXPECT_EQ(deviations, expected);
  EXPECT_EQ(sizes.at("layers.1.feed_forward.w3.weight"), (std::vector<int64_t>{768, 256}));
  EXPECT_EQ(sizes.at("layers.0.feed_forward.w2.weight"), (std::vector<int64_t>{256, 768}));
}

/// With an embedding's deviation of 1 the first loss would be the width's root too large.
TEST(Llama, ATiedTableBeginsAsTheHeadWould) {
  LlamaOptions options;
  options.layers = 1, options.tied_head = true;
  const Llama model(options);
  const auto& table = *model.parameters()[0];
  ASSERT_EQ(table.name(), "tok_embeddings.weight");
  EXPECT_EQ(table.division().parts()[0].initial.distribution.deviation, 1 / 16.0);
}

}  // namespace
}  // namespace lockstep::models
