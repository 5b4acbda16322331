// Whole runs of programs, and their comparison.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <rapidcheck.h>

#include <thread>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/programs/program_run.h"
#include "runtime/context/scopes.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/redistribution/gather.h"
#include "runtime/transport/simulated.h"

namespace lockstep::fuzz {
namespace {

using namespace testing;

/// How a leaf gets to where the program runs: plain tensor, and its place in Program::layouts.
using Placing = std::function<at::Tensor(const at::Tensor&, size_t)>;

/// A sum of the last values, each element with a weight of its own.
at::Tensor loss_of(const std::vector<at::Tensor>& values, const Placing& place) {
  at::Tensor loss;
  for (size_t i = values.size(); i-- > 0 && i + 3 >= values.size();) {
    if (!values[i].requires_grad()) continue;
    const auto weights = exact_tensor(values[i].sizes(), c10::kFloat, 7) * 0.25;
    const auto part = at::sum(at::mul(values[i], place(weights.to(values[i].scalar_type()), SIZE_MAX)));
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

at::Tensor plain_of(const at::Tensor& tensor) { return is_sharded(tensor) ? gather(tensor) : tensor.detach().clone(); }

/// All microbatches, one after the other; gradients add up.
void run_all(const Program& program, const Placing& place, const Mesh* mesh, ProgramOutcome& outcome) {
  std::vector<at::Tensor> parameters;
  for (size_t p = 0; p < program.parameters.size(); ++p)
    parameters.push_back(place(program.parameters[p], p).detach().requires_grad_());
  for (size_t m = 0; m < program.inputs.size(); ++m) {
    RunContext::current().begin_microbatch(1, static_cast<int64_t>(m));
    auto values = parameters;
    for (const auto& input : program.inputs[m]) values.push_back(place(input, parameters.size()));
    ProgramRun run(std::move(values), mesh);
    for (size_t i = 0; i < program.instructions.size(); ++i) run.run(program.instructions[i], i);
    for (const auto& value : run.values()) outcome.values.push_back(plain_of(value));
    const ModuleScope module("loss");
    if (const auto loss = loss_of(run.values(), place); loss.defined()) loss.backward();
  }
  for (const auto& parameter : parameters)
    outcome.gradients.push_back(parameter.grad().defined() ? plain_of(parameter.grad()) : at::Tensor());
}

ProgramOutcome guarded(const Program& program, const Placing& place, const Mesh* mesh) {
  RunContext context;
  const RunContext::Use use(context);
  const RandomScope seed(program.seed);
  ProgramOutcome outcome;
  try {
    run_all(program, place, mesh, outcome);
  } catch (const c10::Error& error) {
    outcome.error = error.what_without_backtrace();
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  return outcome;
}

World::Options options_of(const Program& program, int ranks, std::shared_ptr<const RuleSet> rules = {}) {
  World::Options options;
  options.rules = std::move(rules);
  options.rank_count = ranks;
  options.domain = program.canonical ? Domain::kDeclared : Domain::kFloat64;
  options.numerics = program.canonical ? lockstep::Numerics::kCanonical : lockstep::Numerics::kNative;
  return options;
}

ProgramOutcome in_world(World::Options options, const Program& program, bool whole) {
  World world(std::move(options));
  const auto& mesh = world.mesh(whole ? std::vector<MeshAxis>{{"one", 1}} : program.axes);
  const MeshScope scope(mesh);
  const Placing place = [&](const at::Tensor& plain, size_t leaf) {
    if (whole || leaf >= program.layouts.size()) return distribute(plain, Layout::replicated(mesh));
    const auto layout = Layout::parse(mesh, program.layouts[leaf]);
    return program.canonical ? distribute(plain, layout) : scatter(plain, layout);
  };
  return guarded(program, place, whole ? nullptr : &mesh);
}

std::vector<ProgramOutcome> in_two_groups(const Program& program, const std::shared_ptr<const RuleSet>& rules) {
  const auto transport = std::make_shared<SimulatedTransport>(program.seed, 2);
  std::vector<ProgramOutcome> outcomes(2);
  std::vector<std::thread> threads;
  for (int group = 0; group < 2; ++group)
    threads.emplace_back([&, group] {
      auto options = options_of(program, program.ranks(), rules);
      options.transport = transport;
      for (int rank = group; rank < options.rank_count; rank += 2) options.local_ranks.push_back(rank);
      outcomes[static_cast<size_t>(group)] = in_world(std::move(options), program, false);
      transport->leave();
    });
  for (auto& thread : threads) thread.join();
  return outcomes;
}

double largest(const at::Tensor& tensor) {
  return tensor.defined() && tensor.numel() > 0 ? tensor.to(at::kDouble).abs().max().item<double>() : 0;
}

/// Where two runs differ; "" where they do not. `scale`: the largest value there is; 0: bits.
std::string difference_of(const at::Tensor& actual, const at::Tensor& expected, double scale) {
  if (actual.defined() != expected.defined()) return actual.defined() ? "is there" : "is missing";
  if (!actual.defined()) return {};
  if (actual.sizes() != expected.sizes()) return c10::str("has sizes ", actual.sizes(), " for ", expected.sizes());
  const auto a = actual.to(at::kDouble) + 0, b = expected.to(at::kDouble) + 0;
  const bool wrong = scale <= 0 ? !same_bits(a, b) : !((a - b).abs() <= 1e-9 * scale).all().item<bool>();
  return wrong ? c10::str("is", values_of(actual), " for", values_of(expected)) : "";
}

/// Writes may be refused on a mesh alone, where they would have to move what they write to.
bool may_refuse(const std::string& error) {
  return error.find("would have to move") != error.npos || error.find("unfinished sum") != error.npos;
}

std::string difference_of(const ProgramOutcome& actual, const ProgramOutcome& expected, bool bits) {
  if (actual.error != expected.error && (actual.error.empty() || expected.error.empty()))
    return fmt::format("error \"{}\" for \"{}\"", actual.error, expected.error);
  if (!actual.error.empty()) return {};
  double scale = 1, gradient = 1;
  for (const auto& value : expected.values) scale = std::max(scale, largest(value));
  for (const auto& one : expected.gradients) gradient = std::max(gradient, largest(one));
  const auto per_microbatch = expected.values.size();
  for (size_t i = 0; i < per_microbatch; ++i)
    if (const auto what = difference_of(actual.values[i], expected.values[i], bits ? 0 : scale); !what.empty())
      return fmt::format("value {} {}", i, what);
  for (size_t i = 0; i < expected.gradients.size(); ++i)
    if (const auto what = difference_of(actual.gradients[i], expected.gradients[i], bits ? 0 : scale * gradient);
        !what.empty())
      return fmt::format("the gradient of v{} {}", i, what);
  return {};
}

}  // namespace

ProgramOutcome on_one_device(const Program& program) {
  const Placing place = [](const at::Tensor& plain, size_t) { return plain.to(at::kDouble); };
  return guarded(program, place, nullptr);
}

ProgramOutcome on_one_rank(const Program& program) { return in_world(options_of(program, 1), program, true); }

std::vector<ProgramOutcome> on_the_mesh(const Program& program, std::shared_ptr<const RuleSet> rules) {
  auto options = options_of(program, program.ranks(), rules);
  if (program.delivery == Delivery::kTwoGroups && options.rank_count > 1) return in_two_groups(program, rules);
  if (program.delivery == Delivery::kMessages) options.transport = std::make_shared<SimulatedTransport>(program.seed);
  return {in_world(std::move(options), program, false)};
}

void a_program_gives_one_devices_gradients(bool canonical, std::shared_ptr<const RuleSet> rules) {
  const auto program = draw_program(canonical);
  register_backend();
  const auto expected = on_one_rank(program);
  if (!expected.error.empty()) RC_FAIL(fmt::format("{}\none rank: {}", to_text(program), expected.error));
  if (!canonical && !program.draws())
    if (const auto what = difference_of(expected, on_one_device(program), false); !what.empty())
      RC_FAIL(fmt::format("{}\none rank beside one device: {}", to_text(program), what));
  for (const auto& actual : on_the_mesh(program, rules)) {
    if (may_refuse(actual.error)) return void(++refused_cases()["programs"]);
    if (const auto what = difference_of(actual, expected, canonical); !what.empty())
      RC_FAIL(fmt::format("{}\n{}", to_text(program), what));
  }
  ++compared_cases()["programs"];
}

}  // namespace lockstep::fuzz
