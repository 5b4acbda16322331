#include "trainer/step/gradient_norm.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <set>

#include "runtime/context/observer.h"
#include "runtime/context/scopes.h"
#include "runtime/context/told_values.h"
#include "runtime/context/world.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transfer/whole_mesh.h"

namespace lockstep::trainer {
namespace {

constexpr int kIntegerBits = 27;

/// Each on all ranks of its mesh.
std::vector<at::Tensor> replicated(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all = tensors;
  std::set<const Mesh*> done;
  for (const auto& first : tensors) {
    const auto& mesh = layout_of(first).mesh();
    if (!done.insert(&mesh).second) continue;
    std::vector<size_t> places;
    std::vector<at::Tensor> here;
    for (size_t i = 0; i < tensors.size(); ++i)
      if (&layout_of(tensors[i]).mesh() == &mesh) places.push_back(i), here.push_back(tensors[i]);
    here = redistribute_bucket(here, std::vector(here.size(), Layout::replicated(mesh)));
    for (size_t i = 0; i < places.size(); ++i) all[places[i]] = here[i];
  }
  return all;
}

/// All values, with one small all-reduce per axis; undefined in a run without values.
std::vector<at::Tensor> read_all(const std::vector<at::Tensor>& tensors) {
  auto& world = layout_of(tensors[0]).mesh().world();
  const CommunicationScope scope(world, "gradient_norm");
  const auto whole = on_whole_mesh(replicated(tensors));
  return world.meta() ? std::vector<at::Tensor>(tensors.size()) : gather_numbers(whole);
}

/// What `op` makes of it. Where the gradient is another process's nothing is computed, and there are no shards; the op
/// counts, so that the next ones are called as they are in one process.
template <class Op>
at::Tensor number_of(const at::Tensor& gradient, const char* name, c10::IntArrayRef sizes, c10::ScalarType dtype,
                     const Op& op) {
  const auto& mesh = layout_of(gradient).mesh();
  if (mesh.local_count() > 0) return op(gradient);
  if (!mesh.world().observers().empty()) RunContext::current().next_op_id(name);
  return from_shards({}, Layout::replicated(mesh), sizes, dtype);
}

double native_squares(const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> squares;
  for (const auto& gradient : gradients)
    squares.push_back(number_of(gradient, "mesh::sum_of_squares", {}, c10::kDouble, mesh_ops::sum_of_squares));
  double total = 0;
  for (const auto& square : read_all(squares))
    if (square.defined()) total += square.item<double>();
  return total;
}

/// The least E with maximum <= 2^E.
int exponent_of(double maximum) {
  int exponent = 0;
  const double fraction = std::frexp(maximum, &exponent);
  return fraction > 0.5 || maximum <= 0 ? exponent : exponent - 1;
}

/// high * 2^32 + low, rounded once.
double joined(const at::Tensor& parts) {
  __extension__ using Wide = __int128;
  const auto* words = parts.const_data_ptr<int64_t>();
  return static_cast<double>((static_cast<Wide>(words[0]) << 32) + words[1]);
}

/// No op: ranks that do not need it run none, and would not hear of this one.
at::Tensor zeros_in_place_of(const at::Tensor& gradient) {
  const PlainTensors guard;
  Shards shards;
  for (const auto& shard : sharded(gradient).shards()->local_tensors()) shards.push_back(at::zeros_like(shard));
  return make_sharded(&spec_of(gradient), std::move(shards));
}

double canonical_squares(const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> maxima, squares;
  for (const auto& gradient : gradients)
    maxima.push_back(number_of(gradient, "mesh::absolute_maximum", {}, c10::kFloat, mesh_ops::absolute_maximum));
  const auto bounds = read_all(maxima);
  std::vector<int> exponents;
  bool is_finite = true;
  for (size_t p = 0; p < gradients.size(); ++p) {
    double bound = bounds[p].defined() ? bounds[p].item<double>() : 0;
    // Other ranks may not see it, and wait for our part of the sums.
    const bool has_values = std::isfinite(bound);
    if (!has_values) is_finite = false, bound = 0;
    exponents.push_back(exponent_of(bound));
    const auto values = has_values ? gradients[p] : zeros_in_place_of(gradients[p]);
    squares.push_back(number_of(values, "mesh::scaled_squares", {2}, c10::kLong, [&](const at::Tensor& gradient) {
      return mesh_ops::scaled_squares(gradient, std::ldexp(1.0, kIntegerBits - exponents[p]));
    }));
  }
  const auto sums = read_all(squares);
  double total = 0;
  for (size_t p = 0; p < sums.size(); ++p)
    if (sums[p].defined()) total += std::ldexp(joined(sums[p]), 2 * (exponents[p] - kIntegerBits));
  return is_finite ? total : NAN;
}

}  // namespace

double gradient_norm(const std::vector<at::Tensor>& gradients) {
  if (gradients.empty()) return 0;
  const PhaseScope phase(Phase::kClip);
  const bool canonical = layout_of(gradients[0]).mesh().world().canonical();
  return std::sqrt(canonical ? canonical_squares(gradients) : native_squares(gradients));
}

void add_measured_root(const Optimizer& optimizer, const TrainingState& state, const std::vector<at::Tensor>& gradients,
                       std::vector<StepScalar>& scalars) {
  const PhaseScope phase(Phase::kOptimizer);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> measured;
  double elements = 0;
  size_t next = 0;
  for (const auto& entry : state) {
    if (!entry.trainable) continue;
    const ModuleScope scope(entry.name);
    // Also of other processes' parameters, without shards: whether it measures must be known alike.
    auto values = optimizer.measure(entry, gradients[next++], scalars);
    if (!values.defined()) continue;
    elements += static_cast<double>(values.numel());
    measured.push_back(std::move(values));
  }
  if (measured.empty()) return;
  const double root = gradient_norm(measured) / std::sqrt(elements);
  scalars.push_back({kMeasuredRoot, told_number(layout_of(measured[0]).mesh().whole(), kMeasuredRoot, root)});
}

}  // namespace lockstep::trainer
