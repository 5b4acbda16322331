#include "trainer/metrics/validation.h"

#include <fmt/format.h>

#include "core/elementary/elementary.h"
#include "trainer/metrics/metrics.h"

namespace lockstep::trainer {

ValidationMetrics validation_metrics(double loss_sum, double tokens, std::optional<double> bytes_per_token) {
  constexpr double kBits = 0.6931471805599453;  // nats of a bit: ln 2
  ValidationMetrics metrics;
  metrics.loss = tokens > 0 ? loss_sum / tokens : 0;
  metrics.perplexity = elementary::exp(metrics.loss);
  if (bytes_per_token) metrics.bits_per_byte = metrics.loss / kBits / *bytes_per_token;
  metrics.tokens = tokens;
  return metrics;
}

std::string validation_line(const ValidationMetrics& metrics, int64_t step, int64_t total_steps) {
  const auto width = fmt::formatted_size("{}", total_steps);
  const auto bits = metrics.bits_per_byte ? fmt::format("  bits/byte {:.4f}", *metrics.bits_per_byte) : "";
  return fmt::format("step {:>{}}/{}  validation loss {:.4f}  perplexity {:.2f}{}  {:.0f} tokens  {}", step, width,
                     total_steps, metrics.loss, metrics.perplexity, bits, metrics.tokens,
                     duration_text(metrics.seconds));
}

}  // namespace lockstep::trainer
