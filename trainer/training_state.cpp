#include "trainer/training_state.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "rng/stream.h"
#include "runtime/random.h"
#include "runtime/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

at::Tensor initial_value(const models::Parameter& parameter, const Layout& layout, uint64_t seed) {
  const auto& initial = parameter.initial();
  if (!initial.is_constant)
    return draw(layout, parameter.sizes(), c10::kFloat, initial.distribution, seed,
                rng::stream_of({0, parameter.name(), 0}));
  auto value = draw(layout, parameter.sizes(), c10::kFloat, rng::uniform(), seed, 0);
  return value.fill_(initial.constant);
}

}  // namespace

TrainingState initial_state(models::Model& model, const ShardingPlan& plan, uint64_t seed) {
  const PhaseScope phase(Phase::kInit);
  TrainingState state;
  for (auto* parameter : model.parameters()) {
    auto value = initial_value(*parameter, plan.stored(*parameter), seed);
    state.push_back({parameter->name(), value, at::zeros_like(value), at::zeros_like(value)});
    value.requires_grad_();
    parameter->assign(value);
  }
  return state;
}

void copy_state(const TrainingState& source, TrainingState& target) {
  const at::NoGradGuard no_grad;
  LOCKSTEP_CHECK_EQ(source.size(), target.size());
  const auto copy = [](const at::Tensor& from, at::Tensor& to) { to.copy_(gather(from)); };
  for (size_t p = 0; p < source.size(); ++p) {
    LOCKSTEP_CHECK_EQ(source[p].name, target[p].name);
    copy(source[p].value, target[p].value);
    copy(source[p].mean, target[p].mean);
    copy(source[p].square, target[p].square);
  }
}

Digest state_digest(const TrainingState& state) {
  Digester digester;
  for (const auto& [name, value, mean, square] : state) {
    digester.update(name);
    for (const auto& tensor : {value, mean, square}) {
      const auto whole = gather(tensor).contiguous();
      digester.update({static_cast<const std::byte*>(whole.const_data_ptr()), whole.nbytes()});
    }
  }
  return digester.result();
}

}  // namespace lockstep::trainer
