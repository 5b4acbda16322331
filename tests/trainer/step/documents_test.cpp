// Packed documents: a sample of several is what each of them is by itself.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/families/gpt2.h"
#include "runtime/context/observer.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/canonical_models.h"
#include "tests/support/message_of.h"
#include "tests/support/small_models.h"
#include "trainer/state/state_digest.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

using MakeModel = std::function<std::unique_ptr<models::Model>()>;

constexpr int64_t kVocabulary = 29;

std::unique_ptr<models::Model> small_gpt2() {
  return std::make_unique<models::Gpt2>(models::Gpt2Options{24, 2, 6, 36, kVocabulary, 16, 0});
}
std::unique_ptr<models::Model> plain_llama() { return std::make_unique<models::Llama>(testing::small_llama_options()); }

/// Documents of 1, 2, 3, ... tokens, cut by rows that each begin elsewhere; a row that is one document, too.
TokenBatch pack(TokenBatch batch) {
  const auto rows = static_cast<size_t>(batch.rows), length = static_cast<size_t>(batch.seq_len);
  batch.positions.assign(rows * length, 0);
  for (size_t r = 0; r < rows; ++r) {
    int64_t left = static_cast<int64_t>(r) + 1, size = r % 5 == 4 ? 1000 : left, position = 0;
    left = size;
    for (size_t t = 0; t < length; ++t) {
      batch.positions[r * length + t] = position++;
      if (--left > 0) continue;
      batch.labels[r * length + t] = kIgnoredLabel;
      left = size = size % 7 + 1, position = 0;
    }
  }
  return batch;
}

at::Tensor slice(const std::vector<int64_t>& values, size_t start, size_t count) {
  const auto first = values.begin() + static_cast<ptrdiff_t>(start);
  return at::tensor(std::vector<int64_t>(first, first + static_cast<ptrdiff_t>(count)));
}

/// The sum of losses of every document, run alone by a model without a mesh; backwards, too.
double alone(models::Model& model, const TokenBatch& batch, double valid) {
  at::Tensor sum = at::zeros({}, at::kDouble);
  const auto length = static_cast<size_t>(batch.seq_len);
  for (size_t start = 0, end; start < batch.tokens.size(); start = end) {
    for (end = start + 1; end % length != 0 && batch.positions[end] != 0;) ++end;
    const auto logits = model.forward(slice(batch.tokens, start, end - start).unsqueeze(0)).squeeze(0);
    sum = sum +
          at::cross_entropy_loss(logits, slice(batch.labels, start, end - start), {}, /*reduction=*/2, kIgnoredLabel);
  }
  (sum / valid).backward();
  return (sum / valid).item<double>();
}

void expect_documents_alone(const MakeModel& make, const char* mesh) {
  const auto job = testing::small_job();
  const auto batch = pack(testing::batch_for(job, 1, kVocabulary));
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.domain = Domain::kFloat64;
  options.keep_gradients = true;
  options.make_model = make;
  TrainingRun run(job, options);
  const auto model = make();
  const auto parameters = model->parameters();
  for (size_t p = 0; p < parameters.size(); ++p) parameters[p]->assign(gather(run.state()[p].value).requires_grad_());
  const auto result = run.step(1, batch, 1e-3);
  const auto loss = alone(*model, batch, result.valid_tokens);
  EXPECT_NEAR(result.loss, loss, 1e-12 * loss) << mesh;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const auto expected = parameters[p]->tensor().grad(), actual = gather(result.gradients[p]);
    const double scale = std::max(expected.abs().max().item<double>(), 1e-300);
    EXPECT_LT((actual - expected).abs().max().item<double>() / scale, 1e-11) << mesh << " " << parameters[p]->name();
  }
}

TEST(Documents, OfALlamaAreWhatEachIsAlone) { expect_documents_alone(plain_llama, "one device"); }
TEST(Documents, OfALlamaOnAMeshAreWhatEachIsAlone) { expect_documents_alone(plain_llama, "dp_shard=2,cp=3,tp=3"); }
TEST(Documents, OfGpt2AreWhatEachIsAlone) { expect_documents_alone(small_gpt2, "one device"); }
TEST(Documents, OfGpt2OnAMeshAreWhatEachIsAlone) { expect_documents_alone(small_gpt2, "dp_replicate=2,cp=2,tp=2"); }

struct Place {
  const char* mesh;
  const char* recompute;
  int64_t local_batch;
};

class DocumentBits : public ::testing::TestWithParam<Place> {};

TEST_P(DocumentBits, AreOneDevices) {
  const auto& [mesh, recompute, local_batch] = GetParam();
  for (const auto& model : std::span(testing::kCanonicalModels).first(2)) {
    auto job = testing::canonical_job(model, 4, local_batch);
    job.activation_checkpoint.mode = recompute;
    StepVerifier verifier(job, testing::canonical_options(mesh, model));
    for (int64_t step = 1; step <= 2; ++step) {
      const auto batch = pack(testing::batch_for(job, step, testing::kCanonicalVocabulary));
      const auto check = verifier.check(step, batch, 1e-2);
      ASSERT_TRUE(check.agrees() && check.comparison.differing_bits == 0)
          << mesh << " " << model.name << ": " << (check.blame ? check.blame->text() : check.difference);
    }
  }
}

/// Sequences that are cut: all forms, documents that go over the cuts, and rows that see nothing of a block.
struct CutPlace {
  const char *mesh, *method, *balancer;
  const char *dtype = "float32", *recompute = "none";
  int64_t length = 1024;
  double attention_dropout = 0;
};

/// Digest of the state after two steps, loss and gradient norm of the second.
std::tuple<std::string, double, double> two_steps_of(const CutPlace& place, const char* mesh, const char* numerics) {
  auto job = testing::small_job();
  job.training.seq_len = place.length;
  job.training.global_batch_size = job.training.local_batch_size = 2;
  job.training.mixed_precision_param = place.dtype;
  job.training.pack_documents = true;
  job.activation_checkpoint.mode = place.recompute;
  job.numerics.mode = numerics;
  job.parallelism.context_parallel_rotate_method = place.method;
  job.parallelism.context_parallel_load_balancer = place.balancer;
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = [&] {
    auto llama = testing::small_llama_options();
    llama.length = place.length, llama.attention_dropout = place.attention_dropout;
    return std::make_unique<models::Llama>(llama);
  };
  TrainingRun run(job, options);
  run.step(1, testing::batch_for(job, 1), 1e-2);
  const auto result = run.step(2, testing::batch_for(job, 2), 1e-2);
  return {state_digest(run.state()).text(), result.loss, result.gradient_norm};
}

class DocumentsOfCutSequences : public ::testing::TestWithParam<CutPlace> {};

TEST_P(DocumentsOfCutSequences, HaveOneDevicesBits) {
  EXPECT_EQ(two_steps_of(GetParam(), GetParam().mesh, "canonical"),
            two_steps_of(GetParam(), "one device", "canonical"));
}

constexpr CutPlace kCutPlaces[] = {{"cp=2", "allgather", ""},
                                   {"cp=2", kUlysses, ""},
                                   {"cp=2", kRing, ""},
                                   {"cp=2", "allgather", "", "bfloat16", "full", 200, 0.2},
                                   {"cp=2", kUlysses, "", "float32", "selective", 200, 0.2},
                                   {"cp=2", kRing, "", "bfloat16", "none", 1024, 0.2},
                                   {"cp=4,tp=3", kRing, kHeadTail, "float32", "full", 1024, 0.2},
                                   {"cp=3", "allgather", kHeadTail, "float32", "full", 333, 0.2},
                                   {"cp=4", kRing, "", "bfloat16", "full"},
                                   {"cp=2", kRing, kHeadTail},
                                   {"cp=4", kRing, kHeadTail, "float32", "full"},
                                   {"cp=4,tp=3", kRing, kHeadTail, "bfloat16"},
                                   {"cp=3", "allgather", kHeadTail, "float32", "full"},
                                   {"dp_shard=2,cp=4", "allgather", kHeadTail, "bfloat16"},
                                   {"pp=2,cp=2,tp=2", kRing, kHeadTail, "float32", "selective"}};
INSTANTIATE_TEST_SUITE_P(Forms, DocumentsOfCutSequences, ::testing::ValuesIn(kCutPlaces));

/// Odd numbers of parts, and parts without rows, too.
TEST(Documents, OfCutSequencesInNativeNumericsAgreeButForRounding) {
  for (const CutPlace& place : {CutPlace{"cp=2", kRing, ""},
                                {"cp=3", kRing, kHeadTail, "float32", "full", 1001},
                                {"cp=5", kRing, "", "float32", "none", 999},
                                {"cp=8", kRing, kHeadTail, "float32", "none", 9},
                                {"cp=2,tp=3", kRing, kHeadTail},
                                {"cp=3", kRing, kHeadTail, "float32", "full", 1001, 0.2},
                                {"cp=3", "allgather", kHeadTail},
                                {"cp=2", kUlysses, ""}}) {
    const auto [bits, loss, norm] = two_steps_of(place, place.mesh, "native");
    const auto [expected_bits, expected_loss, expected_norm] = two_steps_of(place, "one device", "native");
    EXPECT_NEAR(loss, expected_loss, 1e-5) << place.mesh;
    EXPECT_NEAR(norm, expected_norm, 1e-4 * expected_norm) << place.mesh;
  }
}

/// One device and a mesh would agree, too, if neither dropped anything.
TEST(Documents, DropWeightsOfAttention) {
  for (const auto& [mesh, method, balancer] : {std::tuple{"one device", "allgather", ""}, {"cp=2", kRing, kHeadTail}}) {
    const auto loss = [&, mesh = mesh, method = method, balancer = balancer](double dropout) {
      return std::get<1>(two_steps_of({mesh, method, balancer, "float32", "none", 512, dropout}, mesh, "canonical"));
    };
    EXPECT_GT(std::abs(loss(0.3) - loss(0)), 1e-4) << mesh;
  }
}

/// With "op" what attention gave is kept: it does not run again.
TEST(Documents, KeepWhatAttentionGave) {
  class Count final : public Observer {
   public:
    void after_op(const OpEvent& event, std::span<const c10::IValue>) override {
      count += event.id.op == "mesh::document_attention";
    }
    int count = 0;
  };
  const auto runs = [](const char* option, double dropout) {
    auto job = testing::small_job();
    job.training.pack_documents = !(dropout > 0);
    job.activation_checkpoint.mode = "selective", job.activation_checkpoint.selective_ac_option = option;
    auto options = testing::small_llama_on("dp_shard=2");
    options.make_model = [=] {
      auto llama = testing::small_llama_options();
      llama.attention_dropout = dropout;
      return std::make_unique<models::Llama>(llama);
    };
    TrainingRun run(job, std::move(options));
    Count count;
    run.world().observers().add(&count);
    run.step(1, testing::batch_for(job, 1), 1e-2);
    run.world().observers().remove(&count);
    return count.count;
  };
  for (const double dropout : {0.0, 0.2}) {
    EXPECT_EQ(runs("op", dropout), 2);
    EXPECT_EQ(runs("1", dropout), 4);
  }
}

TEST(Documents, ThatDoNotFollowOneAnotherAreRefused) {
  const auto message = [](const std::function<void(TokenBatch&)>& spoil) {
    auto job = testing::small_job();
    job.training.pack_documents = true;
    TrainingRun run(job, testing::small_llama_on("dp_shard=2"));
    auto batch = testing::batch_for(job, 1);
    spoil(batch);
    return testing::message_of<BadInput>([&] { run.step(1, batch, 1e-2); });
  };
  EXPECT_EQ(message([](TokenBatch& batch) { batch.positions[15] = 2; }),
            "token 3 of row 1 has position 2 in its document, expected 0 or 3");
  EXPECT_EQ(message([](TokenBatch& batch) { batch.positions[24] = 12; }),
            "token 0 of row 2 has position 12 in its document, expected 0");
  EXPECT_EQ(message([](TokenBatch& batch) { batch.positions.pop_back(); }),
            "a batch of 144 tokens has 143 positions in documents");
}

constexpr Place kPlaces[] = {
    {"dp_shard=2", "full", 1}, {"tp=2", "none", 4}, {"cp=2", "selective", 2}, {"dp_replicate=2,cp=3,tp=2", "none", 1}};
INSTANTIATE_TEST_SUITE_P(Meshes, DocumentBits, ::testing::ValuesIn(kPlaces));

}  // namespace
}  // namespace lockstep::trainer
