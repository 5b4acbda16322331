#include "tools/bench/step_profile.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>

#include "runtime/context/observer.h"
#include "runtime/kernels/speed/machine_speed.h"
#include "runtime/planning/plan.h"
#include "runtime/planning/rule.h"
#include "tools/bench/bench_run.h"

namespace lockstep::bench {
namespace {

constexpr int kSteps = 12, kAlone = 5;

/// Of this thread, in seconds: others on the machine do not count.
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_minflt);
}

/// The least of many: what else the machine does only adds.
double least_seconds(int times, const std::function<void()>& work) {
  double least = INFINITY;
  for (int i = 0; i < times; ++i) {
    const double start = now();
    work();
    least = std::min(least, now() - start);
  }
  return least;
}

std::vector<at::Tensor> tensors_in(std::span<const c10::IValue> values) {
  std::vector<at::Tensor> all;
  for (const auto& value : values) {
    if (value.isTensor() && value.toTensor().defined()) all.push_back(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(tensor);
  }
  return all;
}

double bytes_of_all(const std::vector<at::Tensor>& tensors) {
  double bytes = 0;
  for (const auto& tensor : tensors)
    bytes += static_cast<double>(tensor.numel()) * static_cast<double>(tensor.itemsize());
  return bytes;
}

/// Which operand a product's second factor is; 0: it is none. Codes have maxima between the factors.
size_t second_factor(const Plan& plan) {
  if (!plan.rule) return 0;
  const std::string_view op = plan.rule->op;
  if (op == "mesh::float8_linear" || op == "mesh::float8_weight_gradient") return 2;
  return std::string_view(plan.rule->family) == "matmul" ? 1 : 0;
}
bool is_product(const Plan& plan) { return second_factor(plan) > 0; }

/// Of a product of [m, k] and [k, n] the sizes of all three give m * n * k. Attention's is causal here: half of all
/// scores.
double flops_of(const Plan& plan, const std::vector<at::Tensor>& in, const std::vector<at::Tensor>& out) {
  const auto count = [](const at::Tensor& tensor) { return static_cast<double>(tensor.numel()); };
  if (const auto second = second_factor(plan); second > 0)
    return 2 * std::sqrt(count(in[0]) * count(in[second]) * count(out[0]));
  const std::string_view op = plan.rule ? plan.rule->op : "";
  if (op == "mesh::attention" || op == "mesh::document_attention")
    return 2 * count(in[0]) * static_cast<double>(in[1].size(2));
  if (op == "mesh::attention_backward" || op == "mesh::document_attention_backward")
    return 5 * count(in[1]) * static_cast<double>(in[2].size(2));
  // Of blocks of keys that lie before the queries all scores count.
  if (op == "mesh::attention_over" || op == "mesh::document_attention_over")
    return 4 * count(in[0]) * static_cast<double>(in[1].size(2));
  if (op == "mesh::attention_over_backward" || op == "mesh::document_attention_over_backward")
    return 10 * count(in[1]) * static_cast<double>(in[2].size(2));
  return 0;
}

std::string sizes_text(const std::vector<at::Tensor>& tensors) {
  std::vector<std::string> all;
  for (const auto& tensor : tensors) all.push_back(fmt::format("{}", fmt::join(tensor.sizes(), "x")));
  return fmt::format("{}", fmt::join(all, ", "));
}

/// Adds up what each op costs; if asked for, runs each product again, alone.
class Meter : public Observer {
 public:
  explicit Meter(bool alone) : alone_(alone) {}

  void before_op(const OpEvent&) override { start_ = now(); }

  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override {
    const double seconds = now() - start_;
    const auto in = tensors_in(event.arguments), out = tensors_in(results);
    auto& cost = costs_[{event.id.op, sizes_text(in)}];
    cost.calls += 1, cost.seconds += seconds;
    cost.bytes += bytes_of_all(in) + (event.plan.is_view || event.plan.written >= 0 ? 0 : bytes_of_all(out));
    cost.flops += flops_of(event.plan, in, out);
    if (is_product(event.plan)) product_seconds_ += seconds;
    if (alone_ && is_product(event.plan)) alone_seconds_ += seconds_alone(event);
  }

  StepProfile result(int steps) const {
    StepProfile profile;
    for (const auto& [key, cost] : costs_)
      profile.ops.push_back(
          {key.first, key.second, cost.calls / steps, cost.seconds / steps, cost.bytes / steps, cost.flops / steps});
    std::sort(profile.ops.begin(), profile.ops.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
    profile.product_seconds = product_seconds_ / steps;
    profile.product_seconds_alone = alone_seconds_ / steps;
    return profile;
  }

 private:
  static double seconds_alone(const OpEvent& event) {
    return least_seconds(kAlone, [&] {
      torch::jit::Stack stack(event.arguments.begin(), event.arguments.end());
      event.op.callBoxed(stack);
    });
  }

  bool alone_;
  double start_ = 0, product_seconds_ = 0, alone_seconds_ = 0;
  std::map<std::pair<std::string, std::string>, OpCost> costs_;
};

/// Keeps what products are made of.
class Products final : public Observer {
 public:
  void before_op(const OpEvent& event) override {
    if (is_product(event.plan)) calls_.push_back({event.op, {event.arguments.begin(), event.arguments.end()}});
  }
  void multiply() const {
    const at::NoGradGuard no_grad;
    for (const auto& [op, arguments] : calls_) {
      torch::jit::Stack stack = arguments;
      op.callBoxed(stack);
    }
  }

 private:
  struct Call {
    c10::OperatorHandle op;
    torch::jit::Stack arguments;
  };
  std::vector<Call> calls_;
};

StepProfile measured(BenchRun& run, bool alone, int steps) {
  Meter meter(alone);
  run.run().world().observers().add(&meter);
  for (int i = 0; i < steps; ++i) run();
  run.run().world().observers().remove(&meter);
  return meter.result(steps);
}

trainer::Job job_on_one_thread() {
  at::set_num_threads(1);
  return bench_job({2, 256}, trainer::parse_mesh("one device"), Numerics::kCanonical);
}

}  // namespace

std::function<void()> products_of_a_step() {
  const auto run = std::make_shared<BenchRun>(job_on_one_thread());
  const auto products = std::make_shared<Products>();
  auto& observers = run->run().world().observers();
  observers.add(products.get());
  (*run)();
  observers.remove(products.get());
  return [run, products] { products->multiply(); };
}

StepProfile profile_step() {
  BenchRun run(job_on_one_thread());
  for (int i = 0; i < 3; ++i) run();
  auto profile = measured(run, false, kSteps);
  profile.product_seconds_alone = measured(run, true, 2).product_seconds_alone;
  const double faults = page_faults();
  profile.step_seconds = least_seconds(kSteps, [&] { run(); });
  profile.page_faults = (page_faults() - faults) / kSteps;
  profile.limits = {kernels::product_speed(kernels::thread_workers(1)),
                    kernels::copy_speed(kernels::thread_workers(1))};
  return profile;
}

}  // namespace lockstep::bench
