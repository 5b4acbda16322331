#include "replay/op_case/expected_results.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>

#include "consistency/traced_op.h"
#include "core/error.h"
#include "replay/op_case/case_arguments.h"
#include "runtime/tensor/domain.h"

namespace lockstep::replay {
namespace {

std::vector<at::Tensor> expected_of(const OpCase& one) {
  std::vector<at::Tensor> expected;
  for (;;) {
    const auto name = fmt::format("expected.{}", expected.size());
    const auto found =
        std::find_if(one.tensors.begin(), one.tensors.end(), [&](const auto& t) { return t.name == name; });
    if (found == one.tensors.end()) return expected;
    expected.push_back(plain_tensor(*found));
  }
}

}  // namespace

ExpectedResults::ExpectedResults(const OpCase& one, const c10::OperatorName& op, const World& world)
    : id_(one.id), op_(op), expected_(expected_of(one)) {
  if (expected_.empty())
    fail<BadInput>("the case holds nothing that {} should give (expected.0): there is nothing to compare with", one.op);
  tolerance_ = world.domain() == Domain::kFloat64 ? kFloat64Tolerance : kBits;
  if (tolerance_ < 0 && !world.canonical()) in_double_.emplace(world, Domain::kFloat64);
}

void ExpectedResults::before_op(const OpEvent& event) {
  if (in_double_ && !came_ && event.op.operator_name() == op_) operands_.emplace(event, /*is_canonical=*/false);
}

void ExpectedResults::require_comparable(const std::vector<at::Tensor>& tensors) const {
  if (tensors.size() != expected_.size())
    fail<BadInput>("{} gives {} results, the case holds {} (expected.K)", op_.name, tensors.size(), expected_.size());
  int64_t elements = 0;
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (tensors[k].sizes() != expected_[k].sizes())
      fail<BadInput>("expected.{} of the case has sizes {}, {} gives {}", k, c10::str(expected_[k].sizes()), op_.name,
                     c10::str(tensors[k].sizes()));
    elements += expected_[k].numel();
  }
  if (elements == 0) fail<BadInput>("{} gives no element on the case: there is nothing to compare", op_.name);
}

void ExpectedResults::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  if (came_ || event.op.operator_name() != op_) return;
  came_ = true;
  const auto computed = computed_results(event, results);
  require_comparable(computed);
  blame_ = in_double_ ? compared_as_rounded(event, computed) : compare_op(event, computed, expected_, tolerance_);
  if (blame_) blame_->id = id_;
}

std::optional<Blame> ExpectedResults::compared_as_rounded(const OpEvent& event,
                                                          const std::vector<at::Tensor>& computed) {
  std::vector<HeldShards> results;
  for (const auto& tensor : computed) results.push_back(all_shards(local_shards(tensor)));
  const auto values = operands_->values(event);
  auto all = differences_of_rounded({event, *operands_, values, expected_}, results, *in_double_);
  const auto wrong = std::ranges::find_if(all, [](const Difference& difference) { return !difference.agrees(); });
  if (wrong == all.end()) return std::nullopt;
  wrong->kind = "result", wrong->name = event.id.op;
  auto blame = blame_of("op", event);
  describe(blame, *wrong);
  return blame;
}

std::optional<Blame> ExpectedResults::result() const {
  if (!came_) fail<BadInput>("{} is no op that runs on shards", op_.name);
  return blame_;
}

}  // namespace lockstep::replay
