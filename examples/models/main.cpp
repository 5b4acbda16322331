// Four models that know of no mesh (an MLP-Mixer, a GPT-2 with dropout in its attention, an encoder and decoder, a
// ResNet) train on four meshes. Under canonical numerics losses and parameters have the bits of one device; batch norm
// has no canonical form, so the ResNet stores doubles, and agrees to their rounding.
#include <cstdio>

#include "core/error.h"
#include "image_models.h"
#include "runtime/dispatch/plain_modules.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace {

using namespace lockstep;

constexpr const char* kMeshes[] = {"dp=2", "tp=3", "dp=2,tp=2", "dp=3,tp=2"};
constexpr int64_t kBatch = 6;
constexpr int kSteps = 3;

struct Batch {
  at::Tensor inputs, targets;
};

Batch tokens() {
  const auto ids = at::arange(kBatch * (examples::kLength + 1)).mul(7).remainder(examples::kVocabulary);
  const auto rows = ids.view({kBatch, examples::kLength + 1});
  return {rows.narrow(1, 0, examples::kLength).contiguous(), rows.narrow(1, 1, examples::kLength).contiguous()};
}

Batch images(at::IntArrayRef sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return {at::arange(count, at::kFloat).mul(0.37).sin().view(sizes), at::arange(kBatch)};
}

/// Losses, then parameters.
using Result = std::vector<at::Tensor>;

/// Trains on one mesh: the batch cut over dp, matrices and their biases over tp, by their names.
template <class Model>
Result train(const char* axes, int ranks, const Batch& batch, World::Options options) {
  options.rank_count = ranks;
  World world(std::move(options));
  const Mesh& mesh = world.mesh(axes);
  const MeshScope here(mesh);  // where tensors lie that LibTorch's own code makes on the way
  const RandomScope random(/*seed=*/5);
  const auto model = [&] {
    const MeshConstruction construction(mesh, /*seed=*/42);
    return std::make_shared<Model>();
  }();
  const bool cuts = mesh.find_axis("tp") >= 0;
  shard_parameters(*model, mesh,
                   cuts ? std::vector<ParameterLayout>{{"*up.*", "[tp=S(0)]"}, {"*down.weight", "[tp=S(1)]"}}
                        : std::vector<ParameterLayout>{});
  const auto rows = Layout::parse(mesh, mesh.find_axis("dp") >= 0 ? "[dp=S(0)]" : "[]");
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2));
  Result result;
  for (int step = 0; step < kSteps; ++step) {
    RunContext::current().begin_microbatch(step, 0);
    optimizer.zero_grad();
    const auto loss = model->loss(distribute(batch.inputs, rows), distribute(batch.targets, rows));
    loss.backward();
    optimizer.step();
    result.push_back(gather(loss.detach()));
  }
  for (const auto& parameter : model->parameters()) result.push_back(gather(parameter.detach()));
  return result;
}

/// The largest difference of any loss or parameter.
double difference(const Result& one, const Result& other) {
  double worst = 0;
  for (size_t i = 0; i < one.size(); ++i) worst = std::max(worst, (one[i] - other[i]).abs().max().item<double>());
  return worst;
}

bool equal_bits(const Result& one, const Result& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); });
}

template <class Model>
bool compare(const char* name, const Batch& batch, const World::Options& options) {
  const bool canonical = options.numerics == Numerics::kCanonical;
  const auto alone = train<Model>("", 1, batch, options);
  const double first = alone[0].item().toDouble(), last = alone[kSteps - 1].item().toDouble();
  std::printf("%-16s loss %.6f -> %.6f on one device;", name, first, last);
  bool right = last < first;
  for (const char* mesh : kMeshes) {
    const auto ranks = static_cast<int>(rank_count(parse_mesh_axes(mesh)));
    const auto result = train<Model>(mesh, ranks, batch, options);
    right &= canonical ? equal_bits(result, alone) : difference(result, alone) < 1e-9;
    std::printf(" %s %.1e", mesh, difference(result, alone));
  }
  std::printf("  %s\n", right ? (canonical ? "equal bits" : "equal to 1e-9") : "DIFFERENT");
  return right;
}

int run() {
  const World::Options canonical{.numerics = Numerics::kCanonical}, doubles{.domain = Domain::kFloat64};
  bool right = compare<examples::Mixer>("MLP-Mixer", images({kBatch, examples::kPatches, examples::kWidth}), canonical);
  right &= compare<examples::Gpt2>("GPT-2", tokens(), canonical);
  right &= compare<examples::EncoderDecoder>("encoder-decoder", tokens(), canonical);
  right &= compare<examples::ResNet>("ResNet", images({kBatch, 3, 8, 8}), doubles);
  return right ? 0 : 3;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const Error& error) {
    std::fprintf(stderr, "models: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
