// A user's own module, written for one device, trains on a simulated mesh: replicated, and tensor parallel by a table
// of parameter names. Both runs must stay with one device.
#include <torch/torch.h>

#include <cstdio>

#include "core/error.h"
#include "runtime/dispatch/plain_modules.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace {

using namespace lockstep;

/// Nothing in here knows of meshes.
struct Perceptron : torch::nn::Module {
  Perceptron() {
    inner = register_module("inner", torch::nn::Linear(16, 32));
    outer = register_module("outer", torch::nn::Linear(32, 4));
  }
  torch::Tensor forward(const torch::Tensor& x) { return outer(torch::relu(inner(x))); }

  torch::nn::Linear inner{nullptr}, outer{nullptr};
};

/// A few steps; returns the losses.
std::vector<double> train(Perceptron& model, const torch::Tensor& inputs, const torch::Tensor& targets) {
  torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(1e-2));
  std::vector<double> losses;
  for (int step = 0; step < 10; ++step) {
    optimizer.zero_grad();
    const auto loss = (model.forward(inputs) - targets).square().mean();
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

/// The largest difference of any parameter, relative to that parameter's largest element.
double difference(const Perceptron& on_mesh, const Perceptron& plain) {
  double worst = 0;
  const auto theirs = plain.named_parameters();
  for (const auto& item : on_mesh.named_parameters()) {
    const auto expected = theirs[item.key()].detach();
    const auto error = (gather(item.value().detach()) - expected).abs().max() / expected.abs().max();
    worst = std::max(worst, error.item<double>());
  }
  return worst;
}

/// Trains on the mesh and, from the same start, on one device. Float64 domain: rounding is 1e-14, a mistake is not.
bool compare(const char* name, const std::vector<ParameterLayout>& layouts) {
  World world({.rank_count = 4, .domain = Domain::kFloat64});
  const Mesh& mesh = world.mesh("dp=2,tp=2");

  const auto on_mesh = [&] {
    const MeshConstruction construction(mesh, /*seed=*/42);
    return std::make_shared<Perceptron>();
  }();
  shard_parameters(*on_mesh, mesh, layouts);

  Perceptron plain;
  plain.to(torch::kDouble);
  {
    const torch::NoGradGuard guard;
    const auto start = on_mesh->named_parameters();
    for (auto& item : plain.named_parameters()) item.value().copy_(gather(start[item.key()].detach()));
  }

  const auto inputs = torch::linspace(-1, 1, 8 * 16, torch::kDouble).sin().reshape({8, 16});
  const auto targets = torch::linspace(1, -1, 8 * 4, torch::kDouble).reshape({8, 4});
  const Layout rows = Layout::parse(mesh, "[dp=S(0)]");  // data parallel over the batch
  const auto losses =
      train(*on_mesh, distribute(inputs.to(torch::kFloat), rows), distribute(targets.to(torch::kFloat), rows));
  const auto expected =
      train(plain, inputs.to(torch::kFloat).to(torch::kDouble), targets.to(torch::kFloat).to(torch::kDouble));

  const double error = difference(*on_mesh, plain);
  std::printf("%-16s loss %.6f -> %.6f  (one device %.6f)  parameters differ by %.1e\n", name, losses.front(),
              losses.back(), expected.back(), error);
  return error < 1e-9 && losses.back() < losses.front();
}

int run() {
  const bool replicated = compare("replicated", {});
  const bool sharded = compare("tensor parallel", {{"inner.weight", "[tp=S(0)]"},  // outputs, then inputs
                                                   {"inner.bias", "[tp=S(0)]"},
                                                   {"outer.weight", "[tp=S(1)]"}});
  return replicated && sharded ? 0 : 3;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const Error& error) {
    std::fprintf(stderr, "own_module: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
