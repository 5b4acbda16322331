// The other half of inconsistency_test.cpp: `lockstep-engine` with one fault, which LOCKSTEP_PLANTED_FAULT names; with
// none where that is not set. The linker (--wrap, faulty_engine.cmake) puts functions of this file in the place of
// shipped ones, which know nothing of it. A fault is rank 1's alone: one device, which has rank 0 only, stays right.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include "core/error.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/exchange/exchange.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "trainer/checkpoint/safetensors.h"

namespace lockstep {

// Each function twice: the shipped one, and what is called in its place.
std::shared_ptr<const RuleSet> shipped_rules(Numerics numerics) __asm__("__real_" LOCKSTEP_RULES_SYMBOL);
std::shared_ptr<const RuleSet> planted_rules(Numerics numerics) __asm__("__wrap_" LOCKSTEP_RULES_SYMBOL);
void shipped_exchange(Exchange request, const Use& use) __asm__("__real_" LOCKSTEP_EXCHANGE_SYMBOL);
void planted_exchange(Exchange request, const Use& use) __asm__("__wrap_" LOCKSTEP_EXCHANGE_SYMBOL);
bool shipped_one_result(World& world) __asm__("__real_" LOCKSTEP_ONE_RESULT_SYMBOL);
bool planted_one_result(World& world) __asm__("__wrap_" LOCKSTEP_ONE_RESULT_SYMBOL);
// PendingExchange::finish()
std::vector<Pieces> shipped_finish(PendingExchange& exchange) __asm__("__real_" LOCKSTEP_FINISH_SYMBOL);
std::vector<Pieces> planted_finish(PendingExchange& exchange) __asm__("__wrap_" LOCKSTEP_FINISH_SYMBOL);
namespace trainer {
void shipped_write(const std::string& path,
                   std::span<const TensorBytes> tensors) __asm__("__real_" LOCKSTEP_WRITE_SYMBOL);
void planted_write(const std::string& path,
                   std::span<const TensorBytes> tensors) __asm__("__wrap_" LOCKSTEP_WRITE_SYMBOL);
}  // namespace trainer

namespace {

constexpr int kFaultyRank = 1;

/// Whether the rank at this place among those of this process is the one at fault. One device has none.
bool is_faulty(const Mesh& mesh, size_t index) { return mesh.local_ranks()[index] == kFaultyRank; }

/// A fault in what an op gives, or writes in place.
struct OpFault {
  std::string_view name;
  const char* op;
  int64_t step;  ///< 0: every step
  void (*spoil)(const at::Tensor& result);
};

constexpr OpFault kOpFaults[] = {
    {"wrong gradient", "mesh::weight_gradient", 0,
     [](const at::Tensor& result) { result.mul_(result.is_floating_point() ? at::Scalar(1.001) : at::Scalar(2)); }},
    {"wrong update", "mesh::adamw", 2, [](const at::Tensor& parameter) { parameter.mul_(1.001); }},
    {"update within bound", "mesh::adamw", 2, [](const at::Tensor& parameter) { parameter.mul_(1 + 1e-12); }},
    {"NaN", "gelu", 2, [](const at::Tensor& result) { result.select(0, 0).fill_(NAN); }},
    {"wrong sizes", "gelu", 2,
     [](const at::Tensor& result) {
       result.view({-1, 7919});
     }},
};
constexpr std::string_view kWrongReduction = "wrong reduction", kNanReceived = "NaN received";
constexpr std::string_view kWrongFloatReduction = "wrong reduction of float32";
constexpr std::string_view kWriteBehindASave = "write behind a save";
constexpr std::string_view kSlowSave = "slow save", kFailedSave = "failed save", kDeath = "death while saving";
constexpr std::string_view kOthers[] = {"",          kWrongReduction, kWrongFloatReduction, kNanReceived, kSlowSave,
                                        kFailedSave, kDeath,          kWriteBehindASave};

std::string_view planted() {
  static const char* name = std::getenv("LOCKSTEP_PLANTED_FAULT");
  return name ? name : "";
}

const OpFault* planted_in_op() {
  const auto* found = std::find_if(std::begin(kOpFaults), std::end(kOpFaults),
                                   [](const OpFault& fault) { return fault.name == planted(); });
  const bool is_known =
      found != std::end(kOpFaults) || std::find(std::begin(kOthers), std::end(kOthers), planted()) != std::end(kOthers);
  if (!is_known) fail<BadInput>("LOCKSTEP_PLANTED_FAULT: there is no fault '{}'", planted());
  return found == std::end(kOpFaults) ? nullptr : found;
}

/// The right call, then the fault. Both numerics live in one process (`verify` prices them): each has its own row.
template <Numerics kNumerics>
struct Spoiled {
  static inline LocalFunction right = nullptr;

  static void call(const LocalCall& call, torch::jit::Stack& stack) {
    const auto first = stack[0];
    if (right)
      right(call, stack);
    else
      call.op.callBoxed(stack);
    const auto& fault = *planted_in_op();
    const bool is_due = fault.step == 0 || fault.step == call.context.step();
    if (is_due && is_faulty(call.plan.results.at(0)->layout.mesh(), call.index))
      fault.spoil((stack.empty() ? first : stack[0]).toTensor());
  }
};

template <Numerics kNumerics>
std::shared_ptr<const RuleSet> rules_with_fault() {
  auto shipped = shipped_rules(kNumerics);
  const auto* fault = planted_in_op();
  if (!fault) return shipped;
  const auto* row = shipped->find(fault->op);
  LOCKSTEP_CHECK(row, "there is no rule for {}", fault->op);
  auto spoiled = *row;
  Spoiled<kNumerics>::right = std::exchange(spoiled.local, Spoiled<kNumerics>::call);
  return shipped->with(spoiled);
}

}  // namespace

std::shared_ptr<const RuleSet> planted_rules(Numerics numerics) {
  static const auto native = rules_with_fault<Numerics::kNative>();
  static const auto canonical = rules_with_fault<Numerics::kCanonical>();
  return numerics == Numerics::kNative ? native : canonical;
}

/// Rank 1's alone: what it got of rank 0 in place of the pieces that it received.
std::vector<Pieces> spoiled(const std::vector<Pieces>& received, const Mesh& mesh,
                            const std::function<at::Tensor(const at::Tensor&)>& spoil) {
  auto changed = received;
  for (auto& pieces : changed)
    for (size_t i = 0; i < pieces.size(); ++i)
      if (is_faulty(mesh, i)) pieces[i].at(0) = spoil(pieces[i].at(0));
  return changed;
}

/// "wrong reduction": adds up its part of every gradient without what rank 0 has sent it; "... of float32": of what is
/// stored as that, which under native numerics the run that trains has alone. "NaN received": gets a NaN in every sum
/// of floats over replicas.
bool is_planted(const Exchange& request) {
  const auto& mesh = request.mesh;
  const auto& axis = mesh.axes()[static_cast<size_t>(request.axis)].name;
  const bool is_gradient = request.kind == CollectiveKind::kReduceScatter && axis == "dp_shard";
  const bool is_sum = axis == "dp_replicate" && c10::isFloatingType(request.dtype);
  const bool is_wrong =
      planted() == kWrongReduction || (planted() == kWrongFloatReduction && request.dtype == at::kFloat);
  return !mesh.world().meta() && ((is_wrong && is_gradient) || (planted() == kNanReceived && is_sum));
}

at::Tensor spoil(const at::Tensor& piece) {
  return planted() == kNanReceived ? at::full_like(piece, NAN) : at::zeros_like(piece);
}

/// A fault of one rank's needs what that rank alone received.
bool planted_one_result(World& world) {
  const bool is_in_exchange =
      planted() == kWrongReduction || planted() == kWrongFloatReduction || planted() == kNanReceived;
  return !is_in_exchange && shipped_one_result(world);
}

void planted_exchange(Exchange request, const Use& use) {
  if (!is_planted(request)) return shipped_exchange(std::move(request), use);
  const auto& mesh = request.mesh;
  shipped_exchange(std::move(request),
                   [&](const std::vector<Pieces>& received) { use(spoiled(received, mesh, spoil)); });
}

/// The same of what travelled while something else was computed.
std::vector<Pieces> planted_finish(PendingExchange& exchange) {
  const bool is_wrong = is_planted(exchange.request());
  auto received = shipped_finish(exchange);
  return is_wrong ? spoiled(received, exchange.request().mesh, spoil) : received;
}

/// "slow save": longer than others wait for a message. "failed save": a disk that is full. "death while saving". "write
/// behind a save": to what was saved, where it lies.
void trainer::planted_write(const std::string& path, std::span<const TensorBytes> tensors) {
  const auto* rank = std::getenv("RANK");
  const bool is_here = rank && rank == std::to_string(kFaultyRank);
  if (is_here && planted() == kSlowSave) std::this_thread::sleep_for(std::chrono::seconds(4));
  if (is_here && planted() == kFailedSave) fail<FileError>("{}: cannot be written: No space left on device.", path);
  if (is_here && planted() == kDeath) ::raise(SIGKILL);
  shipped_write(path, tensors);
  if (planted() != kWriteBehindASave || path.find("step-4") == path.npos) return;
  auto& byte = const_cast<std::byte&>(tensors[0].bytes[3]);
  byte ^= std::byte{1};
}

}  // namespace lockstep
