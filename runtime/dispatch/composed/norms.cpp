#include "runtime/dispatch/composed/norms.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::composed {
namespace {

using at::Tensor;

bool is_given(const Perhaps& tensor) { return tensor && tensor->defined(); }

/// fp32 where less is stored.
Tensor wide(const Tensor& tensor) { return tensor.scalar_type() == c10::kDouble ? tensor : tensor.to(c10::kFloat); }

/// A sum over samples that is a parameter's gradient: not rounded before those of all microbatches are there.
Tensor of_parameter(const Tensor& sum, c10::ScalarType dtype) {
  return is_sharded(sum) ? declared_as(sum, dtype) : sum.to(dtype);
}

void check_numerics(const Tensor& input, bool training) {
  if (training && is_sharded(input) && spec_of(input).layout.mesh().world().canonical())
    fail<BadInput>(
        "batch norm has no canonical form: its statistics depend on the microbatch; set numerics.mode = \"native\", or "
        "use group, layer or RMS norm");
}

/// What lies in front of and behind the channels.
std::vector<int64_t> all_but_channels(const Tensor& input) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < input.dim(); ++d)
    if (d != 1) dims.push_back(d);
  return dims;
}

/// One number for each channel, to be broadcast.
Tensor for_channels(const Tensor& values, int64_t dims) {
  std::vector<int64_t> sizes(static_cast<size_t>(dims), 1);
  sizes[1] = values.size(0);
  return wide(values).view(sizes);
}

int64_t count_of(const Tensor& input) { return input.numel() / std::max<int64_t>(input.size(1), 1); }

void check_channels(const char* name, const Perhaps& tensor, const Tensor& input) {
  if (is_given(tensor) && (tensor->dim() != 1 || tensor->size(0) != input.size(1)))
    fail<BadInput>("native_batch_norm: {} has sizes {} for {} channels", name, c10::str(tensor->sizes()),
                   input.size(1));
}

void check(const Tensor& input, const Perhaps& weight, const Perhaps& bias, const Perhaps& mean, const Perhaps& var,
           bool training) {
  if (input.dim() < 2) fail<BadInput>("native_batch_norm: an input of {} dimensions, expected at least 2", input.dim());
  check_channels("weight", weight, input), check_channels("bias", bias, input);
  check_channels("running_mean", mean, input), check_channels("running_var", var, input);
  if (!training && (!is_given(mean) || !is_given(var)))
    fail<BadInput>("native_batch_norm: running statistics are needed outside of training");
  check_numerics(input, training);
}

/// running <- (1 - momentum) running + momentum value
void follow(const Perhaps& running, const Tensor& value, double momentum) {
  if (!is_given(running)) return;
  running->copy_(wide(*running) * (1 - momentum) + value * momentum);
}

struct Statistics {
  Tensor mean, inverse;  ///< of each channel
};

Statistics batch_statistics(const Tensor& x, double eps, const Perhaps& running_mean, const Perhaps& running_var,
                            double momentum) {
  const auto dims = all_but_channels(x);
  const auto mean = at::mean(x, dims);
  const auto around = x - for_channels(mean, x.dim());
  const auto variance = at::mean(around * around, dims);
  const auto count = static_cast<double>(count_of(x));
  follow(running_mean, mean, momentum);
  follow(running_var, variance * (count / (count - 1)), momentum);
  return {mean, at::rsqrt(variance + eps)};
}

}  // namespace

Three batch_norm(const Tensor& input, const Perhaps& weight, const Perhaps& bias, const Perhaps& running_mean,
                 const Perhaps& running_var, bool training, double momentum, double eps) {
  check(input, weight, bias, running_mean, running_var, training);
  const auto x = wide(input);
  const auto statistics = training ? batch_statistics(x, eps, running_mean, running_var, momentum)
                                   : Statistics{wide(*running_mean), at::rsqrt(wide(*running_var) + eps)};
  auto result = (x - for_channels(statistics.mean, x.dim())) * for_channels(statistics.inverse, x.dim());
  if (is_given(weight)) result = result * for_channels(*weight, x.dim());
  if (is_given(bias)) result = result + for_channels(*bias, x.dim());
  const auto none = [&] { return statistics.mean.new_empty({0}); };
  return {result.to(input.scalar_type()), training ? statistics.mean : none(), training ? statistics.inverse : none()};
}

Three batch_norm_backward(const Tensor& gradient, const Tensor& input, const Perhaps& weight,
                          const Perhaps& running_mean, const Perhaps& running_var, const Perhaps& save_mean,
                          const Perhaps& save_invstd, bool training, double eps, std::array<bool, 3> wanted) {
  const auto g = wide(gradient), x = wide(input);
  const auto dims = all_but_channels(x);
  const auto mean = wide(training ? *save_mean : *running_mean);
  const auto inverse = training ? wide(*save_invstd) : at::rsqrt(wide(*running_var) + eps);
  const auto scale = for_channels(inverse, x.dim());
  const auto normal = (x - for_channels(mean, x.dim())) * scale;
  const auto sum = at::sum(g, dims), product = at::sum(g * normal, dims);
  Three result;
  if (wanted[0]) {
    auto of_input = g;
    if (training) {
      const auto count = static_cast<double>(count_of(x));
      of_input = g - for_channels(sum / count, x.dim()) - normal * for_channels(product / count, x.dim());
    }
    of_input = of_input * scale;
    if (is_given(weight)) of_input = of_input * for_channels(*weight, x.dim());
    std::get<0>(result) = of_input.to(input.scalar_type());
  }
  const auto dtype = is_given(weight) ? weight->scalar_type() : sum.scalar_type();
  if (wanted[1]) std::get<1>(result) = of_parameter(product, dtype);
  if (wanted[2]) std::get<2>(result) = of_parameter(sum, dtype);
  return result;
}

Three group_norm(const Tensor& input, const Perhaps& weight, const Perhaps& bias, int64_t batch, int64_t channels,
                 int64_t places, int64_t groups, double eps) {
  const int64_t each = channels / groups;
  const auto x = wide(input).reshape({batch, groups, each, places});
  const auto average = [](const Tensor& values) { return at::mean(values, {2, 3}, /*keepdim=*/true); };
  const auto mean = average(x), around = x - mean;
  const auto inverse = at::rsqrt(average(around * around) + eps);
  auto result = around * inverse;
  const auto of_channels = [&](const Tensor& values) { return wide(values).view({1, groups, each, 1}); };
  if (is_given(weight)) result = result * of_channels(*weight);
  if (is_given(bias)) result = result + of_channels(*bias);
  const auto statistics = [&](const Tensor& values) {
    return values.reshape({batch, groups}).to(is_given(weight) ? weight->scalar_type() : input.scalar_type());
  };
  return {result.reshape(input.sizes()).to(input.scalar_type()), statistics(mean), statistics(inverse)};
}

Three group_norm_backward(const Tensor& gradient, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                          const Perhaps& weight, int64_t batch, int64_t channels, int64_t places, int64_t groups,
                          std::array<bool, 3> wanted) {
  const int64_t each = channels / groups;
  const auto g = wide(gradient).reshape({batch, groups, each, places});
  const auto inverse = wide(rstd).view({batch, groups, 1, 1});
  const auto normal =
      (wide(input).reshape({batch, groups, each, places}) - wide(mean).view({batch, groups, 1, 1})) * inverse;
  Three result;
  if (wanted[0]) {
    const auto scaled = is_given(weight) ? g * wide(*weight).view({1, groups, each, 1}) : g;
    const auto average = [](const Tensor& x) { return at::mean(x, {2, 3}, /*keepdim=*/true); };
    const auto of_input = (scaled - average(scaled) - normal * average(scaled * normal)) * inverse;
    std::get<0>(result) = of_input.reshape(input.sizes()).to(input.scalar_type());
  }
  const auto dtype = is_given(weight) ? weight->scalar_type() : input.scalar_type();
  const auto of_channels = [&](const Tensor& x) {
    return of_parameter(at::sum(x.reshape({batch, channels, places}), c10::IntArrayRef({0, 2})), dtype);
  };
  if (wanted[1]) std::get<1>(result) = of_channels(g * normal);
  if (wanted[2]) std::get<2>(result) = of_channels(g);
  return result;
}

Three layer_norm_backward(const Tensor& gradient, const Tensor& input, c10::SymIntArrayRef shape, const Tensor& mean,
                          const Tensor& rstd, const Perhaps& weight, const Perhaps& bias, std::array<bool, 3> wanted) {
  std::vector<int64_t> normalized, leading;
  const int64_t first = input.dim() - static_cast<int64_t>(shape.size());
  for (int64_t d = 0; d < input.dim(); ++d) (d < first ? leading : normalized).push_back(d);
  const auto g = wide(gradient), inverse = wide(rstd);
  const auto normal = (wide(input) - wide(mean)) * inverse;
  const auto over_leading = [&](const Tensor& x) { return leading.empty() ? x : at::sum(x, leading); };
  Three result;
  if (wanted[0]) {
    const auto scaled = is_given(weight) ? g * wide(*weight) : g;
    const auto average = [&](const Tensor& x) { return at::mean(x, normalized, /*keepdim=*/true); };
    const auto of_input = (scaled - average(scaled) - normal * average(scaled * normal)) * inverse;
    std::get<0>(result) = of_input.to(input.scalar_type());
  }
  if (wanted[1] && is_given(weight))
    std::get<1>(result) = of_parameter(over_leading(g * normal), weight->scalar_type());
  if (wanted[2] && is_given(bias)) std::get<2>(result) = of_parameter(over_leading(g), bias->scalar_type());
  return result;
}

Three batch_norm_legit(const Tensor& input, const Perhaps& weight, const Perhaps& bias, Tensor& running_mean,
                       Tensor& running_var, bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

Three batch_norm_of_batch(const Tensor& input, const Perhaps& weight, const Perhaps& bias, bool training,
                          double momentum, double eps) {
  return batch_norm(input, weight, bias, {}, {}, training, momentum, eps);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_with_update(const Tensor& input, const Perhaps& weight,
                                                                  const Perhaps& bias, Tensor& running_mean,
                                                                  Tensor& running_var, double momentum, double eps) {
  auto [result, mean, inverse] = batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {result, mean, inverse, at::zeros({0}, input.options().dtype(c10::kByte))};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_no_update(const Tensor& input, const Perhaps& weight,
                                                                const Perhaps& bias, const Perhaps& running_mean,
                                                                const Perhaps& running_var, double momentum,
                                                                double eps) {
  auto [result, mean, inverse] = batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps);
  return {result, mean, inverse, at::zeros({0}, input.options().dtype(c10::kByte))};
}

Three batch_norm_with_update_backward(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                                      const Perhaps& running_mean, const Perhaps& running_var, const Perhaps& save_mean,
                                      const Perhaps& save_invstd, bool update, double eps, std::array<bool, 3> wanted,
                                      const Tensor& /*reserve*/) {
  return batch_norm_backward(gradient, input, weight, running_mean, running_var, save_mean, save_invstd, update, eps,
                             wanted);
}

}  // namespace lockstep::composed
