// Ops that slide windows over the last dimensions, resample or pad them: those are whole, batch and channels may be
// cut.
#include <ATen/Functions.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/deferred/range_checks.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/shardings.h"

namespace lockstep::rules {
namespace {

/// Derivatives of resampling name the sizes of what they give.
void local_input_size(const LocalCall& call, torch::jit::Stack& stack) {
  if (gives_nothing(call, stack)) return;
  call.set_argument(stack, "input_size", call.plan.results[0]->local_sizes[call.index]);
  call.op.callBoxed(stack);
}

/// The last dimensions are the ones asked for.
std::vector<ResultShape> with_output_size(const Call& call) {
  auto sizes = call.operand_sizes[0];
  const auto last = call.argument("output_size").toIntVector();
  if (sizes.size() < last.size() + 1 || sizes.size() > last.size() + 2)
    fail<BadInput>("{}: {} dimensions, expected {} or {}", call.op, sizes.size(), last.size() + 1, last.size() + 2);
  for (size_t d = 1; d < sizes.size(); ++d)
    if (sizes[d] == 0) fail<BadInput>("{}: dimension {} has no elements", call.op, d);
  std::copy(last.begin(), last.end(), sizes.end() - static_cast<ptrdiff_t>(last.size()));
  return {{sizes, {}, call.operand_dtypes[0]}};
}

/// Like the operand whose derivative it is.
std::vector<ResultShape> like_input(const Call& call) { return {{call.sizes_of("self"), {}, call.dtype_of("self")}}; }

/// LibTorch's kernels read out of bounds where the batches of operands differ.
void check_batch(const Call& call, size_t last) {
  const auto &self = call.sizes_of("self"), &gradient = call.sizes_of("grad_output");
  for (const auto& sizes : call.operand_sizes)
    if (sizes.size() != self.size() || sizes.size() < last + 1 || sizes.size() > last + 2 ||
        !std::equal(sizes.begin(), sizes.end() - static_cast<ptrdiff_t>(last), self.begin()))
      fail<BadInput>("{}: sizes {} do not fit those of the input, {}", call.op, c10::str(c10::IntArrayRef(sizes)),
                     c10::str(c10::IntArrayRef(self)));
  for (const auto* sizes : {&self, &gradient})
    for (size_t d = sizes->size() - last; d < sizes->size(); ++d)
      if ((*sizes)[d] == 0) fail<BadInput>("{}: dimension {} of an operand has no elements", call.op, d);
  if (has_argument(call.schema, "indices") && call.sizes_of("indices") != gradient)
    fail<BadInput>("{}: indices of sizes {} for a gradient of sizes {}", call.op,
                   c10::str(c10::IntArrayRef(call.sizes_of("indices"))), c10::str(c10::IntArrayRef(gradient)));
}

/// Of a padded tensor: the padding makes up for the difference.
void check_padding(const Call& call) {
  if (!has_argument(call.schema, "padding") || has_argument(call.schema, "kernel_size")) return;
  const auto &self = call.sizes_of("self"), &gradient = call.sizes_of("grad_output");
  const auto pad = call.argument("padding").toIntVector();
  for (size_t d = 0; 2 * d < pad.size(); ++d) {
    const size_t at = self.size() - 1 - d;
    if (gradient[at] != self[at] + pad[2 * d] + pad[2 * d + 1])
      fail<BadInput>("{}: dimension {} of the gradient has {} elements, expected {}", call.op, at, gradient[at],
                     self[at] + pad[2 * d] + pad[2 * d + 1]);
  }
}

template <size_t kLast>
OpSharding derivative(const Call& call) {
  check_batch(call, kLast), check_padding(call);
  auto sharding = all_whole(call);
  for (auto* side : {&sharding.operands, &sharding.results})
    for (auto& dims : *side)
      for (size_t d = 0; d + kLast < dims.size(); ++d) dims[d] = {static_cast<int>(d)};
  return sharding;
}

/// Where indices say which element of a window the gradient belongs to: LibTorch takes any.
template <size_t kLast>
void local_by_index(const LocalCall& call, torch::jit::Stack& stack) {
  if (gives_nothing(call, stack)) return;
  const auto indices = call.tensor(stack, "indices");
  const auto last =
      call.tensor(stack, "self").sizes().slice(static_cast<size_t>(call.tensor(stack, "self").dim()) - kLast);
  const int64_t count = c10::multiply_integers(last);
  auto& checks = call.plan.results[0]->layout.mesh().world().part<RangeChecks>();
  checks.require(indices, count, [name = call.op.schema().name(), count](int64_t wrong) {
    return fmt::format("{}: index {} of a window of {} elements", name, wrong, count);
  });
  checks.settle();                                             // the op reads there at once
  for (const char* name : {"grad_output", "self", "indices"})  // LibTorch reads them as if they were
    call.set_argument(stack, name, call.tensor(stack, name).contiguous());
  call.op.callBoxed(stack);
}

/// "pad" has two numbers for a dimension, the last one first.
std::vector<int64_t> padding_of(const Call& call) {
  auto pad = call.argument("pad").toIntVector();
  if (pad.size() % 2 != 0 || pad.size() > 2 * call.operand_sizes[0].size())
    fail<BadInput>("{}: {} numbers of padding for {} dimensions", call.op, pad.size(), call.dims(0));
  pad.resize(2 * call.operand_sizes[0].size(), 0);
  return pad;
}

std::vector<ResultShape> padded(const Call& call) {
  auto sizes = call.operand_sizes[0];
  const auto pad = padding_of(call);
  for (size_t d = 0; d < sizes.size(); ++d) {
    const size_t at = 2 * (sizes.size() - 1 - d);
    for (const int64_t each : {pad[at], pad[at + 1]})
      if (sizes[d] + each < 0)
        fail<BadInput>("{}: {} elements are cut off dimension {}, of {}", call.op, -each, d, sizes[d]);
    sizes[d] += pad[at] + pad[at + 1];
    if (sizes[d] < 0) fail<BadInput>("{}: dimension {} would have {} elements", call.op, d, sizes[d]);
  }
  return {{sizes, {}, call.operand_dtypes[0]}};
}

OpSharding all_but_padded(const Call& call) {
  OpSharding sharding = all_whole(call);
  const auto pad = padding_of(call);
  for (size_t d = 0; d < sharding.operands[0].size(); ++d) {
    const size_t at = 2 * (sharding.operands[0].size() - 1 - d);
    if (pad[at] == 0 && pad[at + 1] == 0) sharding.operands[0][d] = sharding.results[0][d] = {static_cast<int>(d)};
  }
  return sharding;
}

std::vector<Rule> make_rows() {
  std::vector<Rule> rows;
  const auto on_last = [&](const char* dims, std::initializer_list<const char*> names,
                           std::vector<ResultShape> (*shapes)(const Call&) = nullptr,
                           LocalFunction local = local_unless_empty) {
    add_rows(rows, {"", "window", dims, "-", Rule::kPlain, nullptr, shapes, local}, names);
  };
  on_last("...A->...A", {"_upsample_nearest_exact1d", "reflection_pad1d", "replication_pad1d", "upsample_linear1d",
                         "upsample_nearest1d"});
  on_last("...AB->...AB",
          {"_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa", "_upsample_nearest_exact2d", "avg_pool2d",
           "replication_pad2d", "upsample_bicubic2d", "upsample_bilinear2d", "upsample_nearest2d"});
  on_last("...ABC->...ABC", {"_upsample_nearest_exact3d", "avg_pool3d", "reflection_pad3d", "replication_pad3d",
                             "upsample_nearest3d", "upsample_trilinear3d"});
  on_last("...AB->...AB,...AB", {"adaptive_max_pool2d", "max_pool2d_with_indices"});
  on_last("...ABC->...ABC,...ABC", {"adaptive_max_pool3d"});
  on_last("...AB->...AB", {"_adaptive_avg_pool2d"}, with_output_size);
  on_last("...ABC->...ABC", {"_adaptive_avg_pool3d"}, with_output_size);
  // derivatives
  on_last("...A->...A",
          {"_upsample_nearest_exact1d_backward", "upsample_linear1d_backward", "upsample_nearest1d_backward"}, nullptr,
          local_input_size);
  on_last("...AB->...AB",
          {"_upsample_bicubic2d_aa_backward", "_upsample_bilinear2d_aa_backward", "_upsample_nearest_exact2d_backward",
           "upsample_bicubic2d_backward", "upsample_bilinear2d_backward", "upsample_nearest2d_backward"},
          nullptr, local_input_size);
  on_last("...ABC->...ABC",
          {"_upsample_nearest_exact3d_backward", "upsample_nearest3d_backward", "upsample_trilinear3d_backward"},
          nullptr, local_input_size);
  const auto derivatives = [&](OpSharding (*sharding)(const Call&), std::initializer_list<const char*> names,
                               std::vector<ResultShape> (*shapes)(const Call&) = nullptr,
                               LocalFunction local = local_unless_empty) {
    add_rows(rows, {"", "window", "all but the last", "-", Rule::kPlain, sharding, shapes, local}, names);
  };
  derivatives(derivative<1>, {"reflection_pad1d_backward", "replication_pad1d_backward"});
  derivatives(derivative<2>, {"avg_pool2d_backward"});
  derivatives(derivative<3>, {"avg_pool3d_backward", "reflection_pad3d_backward"});
  derivatives(derivative<2>, {"adaptive_max_pool2d_backward", "max_pool2d_with_indices_backward"}, nullptr,
              local_by_index<2>);
  derivatives(derivative<3>, {"adaptive_max_pool3d_backward"}, nullptr, local_by_index<3>);
  derivatives(derivative<2>,
              {"_adaptive_avg_pool2d_backward", "reflection_pad2d_backward", "replication_pad2d_backward"}, like_input);
  derivatives(derivative<3>, {"_adaptive_avg_pool3d_backward", "replication_pad3d_backward"}, like_input);
  rows.push_back({"constant_pad_nd", "window", "all but what is padded", "-", Rule::kPlain, all_but_padded, padded,
                  local_unless_empty});
  return rows;
}

}  // namespace

std::span<const Rule> windows() {
  static const auto rows = make_rows();
  return rows;
}

}  // namespace lockstep::rules
