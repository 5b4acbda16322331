#include "trainer/verify/batch_check.h"

#include <algorithm>

namespace lockstep::trainer {
namespace {

Difference unequal(const char* kind, const std::string& name, int64_t expected, int64_t given) {
  Difference difference;
  difference.kind = kind, difference.name = name;
  difference.reference = static_cast<double>(expected), difference.candidate = static_cast<double>(given);
  difference.reference_name = "the data";
  difference.relative = 1;
  difference.wrong_elements = difference.elements = 1;
  return difference;
}

void compare_values(const char* kind, const TokenBatch& batch, const std::vector<int64_t>& expected,
                    const std::vector<int64_t>& given, Comparison& result) {
  const auto [right, wrong] = std::mismatch(expected.begin(), expected.end(), given.begin(), given.end());
  result.values += static_cast<int64_t>(expected.size());
  if (right == expected.end() || wrong == given.end()) return;
  const int64_t at = right - expected.begin();
  auto difference = unequal(kind, "the batch", *right, *wrong);
  difference.index = {at / batch.seq_len, at % batch.seq_len};
  difference.elements = static_cast<int64_t>(expected.size());
  difference.wrong_elements = 0;
  for (size_t i = 0; i < expected.size(); ++i) difference.wrong_elements += expected[i] != given[i];
  result.beyond.push_back(std::move(difference));
}

}  // namespace

Comparison compare_batches(const TokenBatch& expected, const TokenBatch& given) {
  Comparison result;
  const auto same = [&](const char* kind, int64_t right, int64_t mine) {
    ++result.values;
    if (right != mine) result.beyond.push_back(unequal(kind, "the batch", right, mine));
  };
  same("rows", expected.rows, given.rows);
  same("length", expected.seq_len, given.seq_len);
  same("first sample", expected.first_sample, given.first_sample);
  const auto differ = [&](auto values) { return (expected.*values).size() != (given.*values).size(); };
  if (differ(&TokenBatch::tokens) || differ(&TokenBatch::labels) || differ(&TokenBatch::positions)) {
    same("tokens", static_cast<int64_t>(expected.tokens.size()), static_cast<int64_t>(given.tokens.size()));
    same("labels", static_cast<int64_t>(expected.labels.size()), static_cast<int64_t>(given.labels.size()));
    same("positions", static_cast<int64_t>(expected.positions.size()), static_cast<int64_t>(given.positions.size()));
    return result;
  }
  compare_values("token", expected, expected.tokens, given.tokens, result);
  compare_values("label", expected, expected.labels, given.labels, result);
  compare_values("position", expected, expected.positions, given.positions, result);
  return result;
}

}  // namespace lockstep::trainer
