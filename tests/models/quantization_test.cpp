// Which linear maps a model quantises, by the names that jobs say.
#include "models/quantization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/families/gpt2.h"
#include "models/families/llama.h"
#include "models/layers.h"
#include "tests/support/message_of.h"

namespace lockstep::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LlamaOptions small() {
  LlamaOptions options;
  options.width = 32, options.layers = 1, options.heads = options.key_value_heads = 2, options.hidden = 64;
  options.vocabulary = 48, options.length = 8;
  return options;
}

QuantizedLinears quantized(const std::vector<std::string>& left_out, const LlamaOptions& options = small()) {
  Llama model(options);
  return quantize_linears(model, {}, left_out, false);
}

TEST(QuantizeLinears, TakesAllThatFit) {
  const auto all = quantized({});
  EXPECT_THAT(all.converted, ElementsAre("head.output", "layers.0.attention.qkv", "layers.0.attention.wo",
                                         "layers.0.feed_forward.gate_up", "layers.0.feed_forward.w2"));
  EXPECT_THAT(all.left, IsEmpty());
}

TEST(QuantizeLinears, LeavesOutWhatIsNamed) {
  EXPECT_THAT(quantized({"output"}).left, ElementsAre("head.output"));
  EXPECT_THAT(quantized({"attention.wq", "attention.wk", "attention.wv", "output"}).left,
              ElementsAre("head.output", "layers.0.attention.qkv"));
  EXPECT_THAT(quantized({"feed_forward"}).left,
              ElementsAre("layers.0.feed_forward.gate_up", "layers.0.feed_forward.w2"));
}

TEST(QuantizeLinears, LeavesOutSizesThatTensorCoresDoNotTake) {
  auto options = small();
  options.vocabulary = 50;
  EXPECT_THAT(quantized({}, options).left, ElementsAre("head.output"));
}

TEST(QuantizeLinears, RefusesPartsOfAFusedMapAndNamesOfNone) {
  EXPECT_THAT(testing::message_of<BadInput>([] { quantized({"attention.wq"}); }),
              HasSubstr("leaves out layers.0.attention.wq, which is one linear map with layers.0.attention.wk and "
                        "layers.0.attention.wv here"));
  EXPECT_THAT(
      testing::message_of<BadInput>([] { quantized({"attention.w_q"}); }),
      HasSubstr("filter_fqns has \"attention.w_q\", which is in no name of a linear map; those are head.output, "));
  auto options = small();
  options.tied_head = true;
  EXPECT_THAT(quantized({"output"}, options).left, IsEmpty());  // a head of a table is no linear map
}

}  // namespace
}  // namespace lockstep::models
