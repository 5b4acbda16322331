// A GPU trains with a CPU's bits under canonical numerics: loss, gradient norm and state, whatever the mesh; what has
// no such form there refuses; a recording of either replays on the other bit by bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "runtime/kernels/on_gpu/canonical_self_test.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/canonical_models.h"
#include "tests/support/message_of.h"
#include "tests/trainer/gpu/canonical_results.h"
#include "trainer/state/state_digest.h"
#include "trainer/step/model_registry.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

struct Trained {
  const char* name;
  const char* mesh;
  int64_t local_batch = 2;  ///< of 4 samples
  const char* dtype = "float32";
  const char* method = "allgather";
  bool packs = false;
  int64_t length = 70;
  std::string_view converter = {};
};

Job job_of(const Trained& what, const char* device) {
  auto job = testing::small_job();
  job.training.device = device;
  job.training.seq_len = what.length;
  job.training.global_batch_size = what.length < 512 ? 4 : 1, job.training.local_batch_size = what.local_batch;
  job.training.mixed_precision_param = what.dtype;
  job.training.pack_documents = what.packs;
  if (!what.converter.empty()) job.model.converters = {std::string(what.converter)};
  job.float8.enable_fsdp_float8_all_gather = what.converter == kFloat8Converter;
  job.mx.recipe_name = "mxfp4_emulated";
  job.quantize.rotated_block = what.converter == kMxConverter ? 32 : 0;
  job.parallelism.context_parallel_rotate_method = what.method;
  job.parallelism.context_parallel_load_balancer = "";
  return job;
}

std::unique_ptr<models::Model> model_of(const Trained& what) {
  if (what.name == std::string("gpt2")) {
    auto options = testing::small_gpt2_options();
    options.positions = what.length;
    return std::make_unique<models::Gpt2>(options);
  }
  auto options = testing::small_llama_options();
  options.length = what.length, options.dropout = options.attention_dropout = 0.1, options.cut_between_leaves = true;
  if (what.length < 512) options.width = options.hidden = 96, options.vocabulary = 101;  // sums of several leaves
  if (what.length >= 512) options.layers = 1;
  auto model = std::make_unique<models::Llama>(options);
  EXPECT_EQ(quantize_linears(job_of(what, "cpu"), *model).converted.empty(), what.converter.empty());
  return model;
}

/// Loss and gradient norm of the second step, and the state after it.
std::string train(const Trained& what, const char* device, const char* mesh) {
  const auto job = job_of(what, device);
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = [&] { return model_of(what); };
  TrainingRun run(job, options);
  run.step(1, testing::batch_for(job, 1), 1e-2);
  const auto result = run.step(2, testing::batch_for(job, 2), 1e-2);
  return fmt::format("loss {:a}, gradient norm {:a}, state {}", result.loss, result.gradient_norm,
                     state_digest(run.state()).text());
}

class GpuCanonicalTraining : public ::testing::TestWithParam<Trained> {
 protected:
  void SetUp() override {
    if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
      GTEST_SKIP() << "NOT CHECKED: canonical training on a GPU (" << reason << ")";
  }
};

TEST_P(GpuCanonicalTraining, HasACpusBits) {
  EXPECT_EQ(train(GetParam(), "cuda", GetParam().mesh), train(GetParam(), "cpu", "one device"));
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, GpuCanonicalTraining,
    ::testing::Values(Trained{"llama", "one device"}, Trained{"llama", "dp_shard=2,tp=3", 1},
                      Trained{"llama", "dp_replicate=2,cp=2", 2, "bfloat16"},
                      Trained{"llama", "pp=2,tp=2", 1, "bfloat16"},
                      Trained{"llama", "cp=2", 2, "float32", "ulysses", true},
                      Trained{"llama", "cp=2", 1, "float32", "alltoall", true, 512},
                      Trained{"gpt2", "one device", 4, "bfloat16"}, Trained{"gpt2", "dp_shard=2,tp=2"},
                      Trained{.name = "llama",
                              .mesh = "dp_shard=2,tp=2",
                              .local_batch = 1,
                              .dtype = "bfloat16",
                              .length = 64,
                              .converter = kFloat8Converter},
                      Trained{
                          .name = "llama", .mesh = "cp=2", .local_batch = 1, .length = 66, .converter = kMxConverter}));

using GpuCanonicalOps = GpuCanonicalTraining;
INSTANTIATE_TEST_SUITE_P(OneDevice, GpuCanonicalOps, ::testing::Values(Trained{"llama", "one device"}));

TEST_P(GpuCanonicalOps, WithoutABitsOfACpuRefuse) {
  World world({.rank_count = 1, .numerics = lockstep::Numerics::kCanonical, .device = c10::kCUDA});
  const auto x = distribute(at::ones({4, 4}), Layout::replicated(world.mesh("dp=1")));
  const char* end = " has no canonical form on a GPU; set numerics.mode = \"native\", or training.device = \"cpu\"";
  EXPECT_EQ(testing::message_of<BadInput>([&] { at::cumsum(x, 0); }), std::string("cumsum") + end);
  EXPECT_EQ(testing::message_of<BadInput>([&] { at::rsqrt(x); }), std::string("rsqrt") + end);
}

/// The step as a whole beside one device's.
TEST_P(GpuCanonicalOps, AreVerifiedOnAMesh) {
  const Trained what{"llama", "cp=2", 1, "float32", "alltoall", false, 512};
  auto job = job_of(what, "cuda");
  TrainingRun::Options options;
  options.mesh = parse_mesh(what.mesh);
  options.make_model = [&] { return model_of(what); };
  StepVerifier verifier(job, options);
  const auto check = verifier.check(1, testing::batch_for(job, 1), 1e-2);
  EXPECT_TRUE(check.agrees() && check.comparison.differing_bits == 0) << check.difference;
}

/// Each kernel's result by one bit.
TEST_P(GpuCanonicalOps, OfOtherBitsAreNoticedBeforeTheFirstStep) {
  EXPECT_GT(on_gpu::canonical_self_test().comparisons, 80);
  for (const char* wrong : {"single operations", "products", "sums", "norms", "gates", "softmax", "functions", "losses",
                            "attention", "forms of attention", "numbers of few bits", "rotations", "AdamW"}) {
    const auto tamper = [&](const char* kernel, const at::Tensor& result) {
      if (std::string_view(kernel) != wrong || !result.is_floating_point()) return;
      const auto word = result.element_size() == 2 ? c10::kShort : c10::kInt;
      auto first = result;
      while (first.dim() > 0) first = first.select(0, 0);
      first.view(word).bitwise_xor_(1);
    };
    EXPECT_EQ(testing::message_of<Inconsistency>([&] { on_gpu::canonical_self_test(tamper); }),
              fmt::format("canonical numerics on this GPU: result 0 of the self-test's {} in Float has other bits than "
                          "the CPU's. Set training.device = \"cpu\" or numerics.mode = \"native\", and report it",
                          wrong));
  }
}

/// What LibTorch's own kernels could do otherwise: multiply by a reciprocal, fuse a product and a sum, round 16 bits
/// more than once, or a number beside them first, flush what is subnormal, give the other one of two zeros.
std::vector<at::Tensor> results_on(c10::DeviceType device, c10::ScalarType dtype) {
  World world({.rank_count = 1, .numerics = lockstep::Numerics::kCanonical, .device = device});
  const auto layout = Layout::replicated(world.mesh("dp=1"));
  const auto odd = at::tensor({0.0, -0.0, 1e-40, -1e-40, 1e38, double(INFINITY), -double(INFINITY), double(NAN)});
  const auto numbers = at::cat({at::arange(-50, 350).mul(1.37), odd, odd.flip(0)}).to(dtype);
  const auto wide = distribute(at::full({}, 1.00390625, c10::kFloat), layout);
  const auto x = distribute(numbers, layout), y = distribute(numbers.flip(0), layout);
  std::vector<at::Tensor> results{at::div(x, 49),
                                  at::div(x, at::scalar_tensor(3, dtype)),
                                  at::div(x, y),
                                  at::mean(x),
                                  at::add(x, y, 0.3),
                                  at::sub(x, y, 1.7),
                                  at::addcmul(x, x, y, 3),
                                  at::mul(x, 0.1),
                                  at::rsub(x, 0.7),
                                  at::lerp(x, y, 0.3),
                                  at::sqrt(x),
                                  at::square(x),
                                  at::log1p(x),
                                  at::_to_copy(x, c10::kBFloat16),
                                  at::relu(x),
                                  at::clamp_min(x, 0),
                                  at::maximum(x, y),
                                  at::minimum(x, y),
                                  at::mul(x, wide),
                                  at::div(x, wide),
                                  at::mul(x, y),
                                  at::add(x, y),
                                  at::sub(x, y),
                                  at::add(x, wide),
                                  at::pow(x, 3),
                                  at::reciprocal(x),
                                  at::neg(x),
                                  at::abs(x),
                                  at::softplus(x),
                                  at::expm1(x),
                                  at::leaky_relu(x, 0.1),
                                  at::round(x),
                                  at::amax(x, {0}),
                                  at::where(at::gt(x, y), x, y),
                                  at::sum(at::gt(x, y)),
                                  at::threshold_backward(y, x, 0)};
  const PlainTensors guard;
  for (auto& result : results) result = sharded(result).shards()->whole()[0].cpu();
  return results;
}

TEST_P(GpuCanonicalOps, OfLibTorchHaveACpusBits) {
  for (const auto dtype : {c10::kFloat, c10::kBFloat16}) {
    const auto gpu = results_on(c10::kCUDA, dtype), cpu = results_on(c10::kCPU, dtype);
    for (size_t i = 0; i < cpu.size(); ++i)
      EXPECT_TRUE(testing::same_bits(testing::with_one_nan(gpu[i]), testing::with_one_nan(cpu[i])))
          << "result " << i << " of " << dtype;
  }
}

}  // namespace
}  // namespace lockstep::trainer
