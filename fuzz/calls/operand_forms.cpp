#include "fuzz/calls/operand_forms.h"

#include <ATen/Functions.h>
#include <rapidcheck.h>

#include "fuzz/calls/drawn_mesh.h"
#include "fuzz/cases/drawn.h"

namespace lockstep::testing {
namespace {

bool is_repeated(const at::Tensor& plain, int64_t dim) { return plain.size(dim) > 1 && plain.stride(dim) == 0; }

/// What repeats, once.
at::Tensor once(at::Tensor plain) {
  for (int64_t dim = 0; dim < plain.dim(); ++dim)
    if (is_repeated(plain, dim)) plain = plain.narrow(dim, 0, 1);
  return plain;
}

OperandForm::Kind draw_kind(const at::Tensor& plain, bool dense) {
  const auto kind = drawn(*rc::gen::inRange(0, 9));
  if (kind == 8) return OperandForm::kDistributed;
  if (dense) return OperandForm::kScattered;
  if (repeats(plain) && kind < 5) return kind < 3 ? OperandForm::kExpanded : OperandForm::kDistributed;
  if (kind == 7) return OperandForm::kWithGaps;
  return kind >= 5 && plain.dim() >= 2 ? OperandForm::kTurned : OperandForm::kScattered;
}

/// What is expanded is whole on every rank; distribute() gives no averages that are sure to be exact.
Placements draw_placements(const Mesh& mesh, const at::Tensor& plain, OperandForm::Kind kind) {
  auto placements = draw_layout(mesh, kind == OperandForm::kTurned ? plain.transpose(0, -1) : plain).placements();
  for (auto& placement : placements) {
    if (kind == OperandForm::kExpanded && placement.is_shard() && is_repeated(plain, placement.dim))
      placement = Placement::replicate();
    if (kind == OperandForm::kDistributed && placement.is_partial() && placement.reduction == Reduction::kAvg)
      placement.reduction = Reduction::kSum;
  }
  return placements;
}

/// Behind other elements of a larger transposed tensor.
at::Tensor as_a_part(const at::Tensor& plain) {
  if (repeats(plain) || plain.dim() == 0) return plain;
  auto sizes = plain.sizes().vec();
  std::swap(sizes.front(), sizes.back());
  sizes.front() += 2;
  const auto part = at::ones(sizes, plain.options()).transpose(0, -1).narrow(-1, 1, plain.size(-1));
  return part.copy_(plain), part;
}

}  // namespace

bool repeats(const at::Tensor& tensor) {
  for (int64_t dim = 0; dim < tensor.dim(); ++dim)
    if (is_repeated(tensor, dim)) return true;
  return false;
}

OperandForm::Kind draw_unmoved_kind(const at::Tensor& plain, bool dense) {
  if (drawn(*rc::gen::inRange(0, 4)) < 3) return OperandForm::kScattered;
  return repeats(plain) && !dense ? OperandForm::kExpanded : OperandForm::kDistributed;
}

OperandForm form_in(const Placements& placements, const at::Tensor& plain, OperandForm::Kind kind) {
  for (const auto& placement : placements) {
    const bool cuts_repeats = placement.is_shard() && is_repeated(plain, placement.dim);
    const bool averages = placement.is_partial() && placement.reduction == Reduction::kAvg;
    if ((kind == OperandForm::kExpanded && cuts_repeats) || (kind == OperandForm::kDistributed && averages))
      return {OperandForm::kScattered, placements};
  }
  return {kind, placements};
}

OperandForm draw_form(const Mesh& mesh, const at::Tensor& plain, bool dense) {
  const auto kind = draw_kind(plain, dense);
  return {kind, draw_placements(mesh, plain, kind)};
}

std::vector<OperandForm> draw_forms(const OpCase& op_case, const OpCall& call, const Mesh& mesh, bool forward) {
  std::vector<OperandForm> forms;
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const auto plain = call.tensor(i);
    const bool may_stay =
        i == 1 && call.slots.size() == 2 && plain.dim() == 0 && call.slots[i].element < 0 && !call.writes(i);
    const bool dense = op_case.is(OpCase::kDense) || !(forward || plain.is_floating_point());
    const bool stays = forward && may_stay && *rc::gen::arbitrary<bool>();
    forms.push_back(stays ? OperandForm{OperandForm::kPlain} : draw_form(mesh, plain, dense));
  }
  return forms;
}

at::Tensor place(const Mesh& mesh, const at::Tensor& plain, const OperandForm& form) {
  if (form.kind == OperandForm::kPlain) return plain;
  const Layout layout(mesh, form.placements);
  switch (form.kind) {
    case OperandForm::kTurned:
      return scatter(plain.transpose(0, -1).contiguous(), layout).transpose(0, -1);
    case OperandForm::kWithGaps:
      return scatter(at::stack({at::ones_like(plain), plain}, -1), layout).select(-1, 1);
    case OperandForm::kExpanded:
      return scatter(once(plain), layout).expand(plain.sizes());
    case OperandForm::kDistributed:
      return distribute(as_a_part(plain), layout);
    default:
      return scatter(plain, layout);
  }
}

std::vector<at::Tensor> place_all(const Mesh& mesh, const OpCall& call, const std::vector<OperandForm>& forms) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < call.slots.size(); ++i) tensors.push_back(place(mesh, call.tensor(i), forms[i]));
  return tensors;
}

std::string text_of(const std::vector<OperandForm>& forms) {
  static constexpr const char* kNames[] = {"", "turned", "with gaps", "expanded", "distributed", ""};
  std::string text;
  for (size_t i = 0; i < forms.size(); ++i)
    if (const std::string name = kNames[forms[i].kind]; !name.empty())
      text += fmt::format("{}operand {} {}", text.empty() ? " (" : ", ", i, name);
  return text.empty() ? text : text + ")";
}

namespace {

/// Of equal rows there is no inverse, of equal eigenvalues no derivative, and the variance of equal numbers is
/// rounding. LibTorch 2.11's medians read beyond operands that repeat elements.
bool may_repeat(const std::string& op) {
  for (const auto* part :
       {"linalg", "inverse", "cholesky", "lu_", "det", "svd", "qr", "triangular_solve", "norm", "std", "var", "median"})
    if (op.find(part) != op.npos) return false;
  return true;
}

bool is_taken(const OpCall& call) {
  try {
    return run(call.op, plain_arguments(call, {})), true;  // of clones: it may write
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

void draw_repeats(OpCall& call) {
  if (call.slots.empty() || drawn(*rc::gen::inRange(0, 6)) < 5) return;
  const auto slot = *rc::gen::inRange<size_t>(0, call.slots.size());
  const auto tensor = call.tensor(slot);
  if (tensor.dim() == 0 || call.writes(slot) || !may_repeat(op_name(call.op))) return;
  const auto dim = *rc::gen::inRange<int64_t>(0, tensor.dim());
  if (tensor.size(dim) < 2) return;
  auto tensors = tensors_of(call);
  tensors[slot] = tensor.narrow(dim, 0, 1).expand(tensor.sizes());
  auto repeated = call;
  repeated.arguments = with_tensors(call, tensors);
  if (is_taken(repeated)) call = repeated;
}

}  // namespace lockstep::testing
