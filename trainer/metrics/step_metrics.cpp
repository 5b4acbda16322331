#include "trainer/metrics/step_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep::trainer {
namespace {

/// An object of numbers, in the order in which they are added.
class JsonLine {
 public:
  void add(const char* name, double value) { add_text(name, std::isfinite(value) ? fmt::format("{}", value) : "null"); }
  void add(const char* name, int64_t value) { add_text(name, fmt::format("{}", value)); }
  template <class Number>
  void add(const char* name, const std::optional<Number>& value) {
    value ? add(name, *value) : add_text(name, "null");
  }
  std::string text() const { return text_ + "}"; }

 private:
  void add_text(const char* name, const std::string& value) {
    text_ += fmt::format("{}\"{}\":{}", text_.empty() ? '{' : ',', name, value);
  }
  std::string text_;
};

/// Numbers that are there.
class Curves {
 public:
  void add(std::string_view tag, double value) { events_.push_back({tag, value}); }
  void add(std::string_view tag, const std::optional<double>& value, double unit = 1) {
    if (value) add(tag, *value / unit);
  }
  void add_bytes(std::string_view tag, int64_t bytes) { add(tag, static_cast<double>(bytes) / (1 << 30)); }
  std::vector<ScalarEvent> take() { return std::move(events_); }

 private:
  std::vector<ScalarEvent> events_;
};

constexpr double kTera = 1e12, kPercent = 100;

void add_gpu(JsonLine& line, const StepMetrics& metrics) {
  if (!metrics.knows_gpu()) return;
  line.add("gpu_memory_bytes", metrics.gpu->allocated_bytes);
  line.add("gpu_peak_memory_bytes", metrics.gpu->peak_allocated_bytes);
  line.add("gpu_peak_reserved_bytes", metrics.gpu->peak_reserved_bytes);
  line.add("gpu_allocation_retries", metrics.gpu->retries);
}

void add_gpu(Curves& curves, const StepMetrics& metrics) {
  if (!metrics.knows_gpu()) return;
  curves.add_bytes("memory/max_allocated(GiB)", metrics.gpu->peak_allocated_bytes);
  curves.add_bytes("memory/max_reserved(GiB)", metrics.gpu->peak_reserved_bytes);
  curves.add("memory/num_alloc_retries", static_cast<double>(metrics.gpu->retries));
}

void add_validation(JsonLine& line, const StepMetrics& metrics) {
  if (const auto& validation = metrics.validation) {
    line.add("validation_loss", validation->loss);
    line.add("validation_perplexity", validation->perplexity);
    line.add("validation_bits_per_byte", validation->bits_per_byte);
    line.add("validation_tokens", validation->tokens);
    line.add("validation_seconds", validation->seconds);
  }
}

}  // namespace

std::optional<double> StepMetrics::utilization() const {
  return peak_operations > 0 ? std::optional(operations_per_second / peak_operations) : std::nullopt;
}

std::optional<int64_t> StepMetrics::other_bytes() const {
  const int64_t peak = gpu ? gpu->peak_allocated_bytes : peak_memory_bytes;
  if (peak <= 0) return std::nullopt;
  return std::max<int64_t>(0, peak - parameter_bytes - gradient_bytes - optimizer_bytes);
}

std::string json_line(const StepMetrics& metrics) {
  JsonLine line;
  line.add("step", metrics.step);
  line.add("loss", metrics.loss);
  line.add("max_loss", metrics.max_loss);
  line.add("grad_norm", metrics.grad_norm);
  line.add("learning_rate", metrics.learning_rate);
  line.add("tokens_per_second", metrics.tokens_per_second);
  line.add("checked_tokens_per_second", metrics.checked_tokens_per_second);
  line.add("teraflops", metrics.operations_per_second / kTera);
  line.add("mfu", metrics.utilization());
  line.add("memory_bytes", metrics.memory_bytes);
  line.add("peak_memory_bytes", metrics.peak_memory_bytes);
  add_gpu(line, metrics);
  line.add("parameter_bytes", metrics.parameter_bytes);
  line.add("gradient_bytes", metrics.gradient_bytes);
  line.add("optimizer_bytes", metrics.optimizer_bytes);
  line.add("other_bytes", metrics.other_bytes());
  line.add("step_seconds", metrics.step_seconds);
  line.add("data_seconds", metrics.data_seconds);
  line.add("communication_seconds", metrics.communication_seconds);
  line.add("checkpoint_seconds", metrics.checkpoint_seconds);
  line.add("seconds", metrics.seconds);
  line.add("seconds_left", metrics.seconds_left);
  add_validation(line, metrics);
  return line.text();
}

std::vector<ScalarEvent> scalar_events(const StepMetrics& metrics) {
  Curves curves;
  curves.add("loss_metrics/global_avg_loss", metrics.loss);
  curves.add("loss_metrics/global_max_loss", metrics.max_loss);
  curves.add("grad_norm", metrics.grad_norm);
  curves.add("lr", metrics.learning_rate);
  curves.add("throughput(tps)", metrics.checked_tokens_per_second.value_or(metrics.tokens_per_second));
  curves.add("tflops", metrics.operations_per_second / kTera);
  curves.add("mfu(%)", metrics.utilization(), 1 / kPercent);
  curves.add("time_metrics/end_to_end(s)", metrics.step_seconds);
  curves.add("time_metrics/data_loading(s)", metrics.data_seconds);
  curves.add("time_metrics/data_loading(%)", kPercent * metrics.data_seconds / metrics.step_seconds);
  curves.add("time_metrics/communication(s)", metrics.communication_seconds);
  curves.add("time_metrics/checkpoint(s)", metrics.checkpoint_seconds);
  curves.add("time_metrics/left(s)", metrics.seconds_left);
  curves.add_bytes("memory/resident(GiB)", metrics.memory_bytes);
  if (metrics.peak_memory_bytes > 0) curves.add_bytes("memory/peak_resident(GiB)", metrics.peak_memory_bytes);
  add_gpu(curves, metrics);
  curves.add_bytes("memory/parameters(GiB)", metrics.parameter_bytes);
  curves.add_bytes("memory/gradients(GiB)", metrics.gradient_bytes);
  curves.add_bytes("memory/optimizer(GiB)", metrics.optimizer_bytes);
  if (const auto other = metrics.other_bytes()) curves.add_bytes("memory/other(GiB)", *other);
  if (const auto& validation = metrics.validation) {
    curves.add("validation_metrics/loss", validation->loss);
    curves.add("validation_metrics/perplexity", validation->perplexity);
    curves.add("validation_metrics/bits_per_byte", validation->bits_per_byte);
  }
  return curves.take();
}

}  // namespace lockstep::trainer
