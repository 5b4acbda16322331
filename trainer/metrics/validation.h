#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::trainer {

/// What a model makes of data that it is not trained on.
struct ValidationMetrics {
  double loss = 0;        ///< mean over all tokens that have a label, in nats
  double perplexity = 0;  ///< e^loss
  /// Of the text, in UTF-8: the loss in bits, over the mean bytes of a token; none where these are not known.
  std::optional<double> bits_per_byte = {};
  double tokens = 0;   ///< that have a label
  double seconds = 0;  ///< that it took
};

/// Of a sum of losses over so many tokens. The same bits on every machine. A loss of nothing is 0.
ValidationMetrics validation_metrics(double loss_sum, double tokens, std::optional<double> bytes_per_token);

/// "step 10/200  validation loss 2.3456  perplexity 10.44  bits/byte 3.3840  12,288 tokens  0s"
std::string validation_line(const ValidationMetrics& metrics, int64_t step, int64_t total_steps);

}  // namespace lockstep::trainer
