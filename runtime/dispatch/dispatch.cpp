#include "runtime/dispatch/dispatch.h"

#include <bit>

#include "core/error.h"
#include "runtime/context/observer.h"
#include "runtime/context/parameter_names.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/deferred/kept_results.h"
#include "runtime/dispatch/run_plan.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/plan_cache.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

/// Words that tell values of different types apart in a key.
enum Tag : int64_t {
  kPlain = -1,
  kUndefined = -2,
  kDouble = -3,
  kNone = -4,
  kOther = -5,
  kInt = -6,
  kBool = -7,
  kList = -8,
  kComplex = -9
};

/// Reads arguments in place: nothing is copied and nothing allocated (but for the words of very long argument lists).
class KeyBuilder {
 public:
  void add(const c10::IValue& value) {
    if (value.isTensor()) return add(value.toTensor());
    if (value.isInt()) return put(kInt, value.toInt());
    if (value.isNone()) return put(kNone);
    if (value.isDouble()) return put(kDouble);
    if (value.isComplexDouble()) return put(kComplex);
    if (value.isBool()) return put(kBool, value.toBool());
    if (value.isList()) return add_list(value.toListRef());
    if (value.isString()) return put(kOther, static_cast<int64_t>(std::hash<std::string>()(value.toStringRef())));
    if (value.isDevice()) return put(kOther, static_cast<int64_t>(value.toDevice().type()));
    put(kOther);
  }

  /// The floating-point arguments, which are no part of a key but where sizes depend on them.
  void add_numbers(std::span<const c10::IValue> arguments) {
    for (const auto& argument : arguments)
      if (argument.isDouble()) put(std::bit_cast<int64_t>(argument.toDouble()));
  }

  void put(int64_t word) { key.words.push_back(word); }
  void put(int64_t tag, int64_t word) {
    key.words.push_back(tag);
    key.words.push_back(word);
  }

  PlanKey key;
  const Mesh* mesh = nullptr;

 private:
  void join(const Mesh& other) {
    if (!mesh) mesh = &other;
    if (mesh != &other) [[unlikely]]
      fail<BadInput>("one op has operands on mesh {} and on mesh {}; bring them to one mesh first", mesh->text(),
                     other.text());
  }
  void add(const at::Tensor& tensor) {
    if (!tensor.defined()) return put(kUndefined);
    if (!is_sharded(tensor)) return add_plain(tensor);
    sharded(tensor).bring_up_to_date();
    const auto& spec = spec_of(tensor);
    join(spec.layout.mesh());
    put(reinterpret_cast<int64_t>(&spec));
  }
  void add_plain(const at::Tensor& tensor) {
    put(kPlain, static_cast<int64_t>(tensor.scalar_type()));
    put(kBool, tensor.unsafeGetTensorImpl()->is_wrapped_number());
    put(kList, tensor.dim());
    for (const int64_t size : tensor.sizes()) put(size);
  }
  void add_list(c10::ArrayRef<c10::IValue> values) {
    put(kList, static_cast<int64_t>(values.size()));
    for (const auto& value : values) add(value);
  }
};

bool sizes_from_scalars(const c10::OperatorHandle& op, const Mesh& mesh) {
  const auto* rule = mesh.world().part<RulesInUse>().get().find(op_name(op));
  return rule && (rule->traits & Rule::kSizesFromScalars) != 0;
}

Plan& find_plan(const c10::OperatorHandle& op, std::span<const c10::IValue> arguments, const Mesh& mesh,
                const RunContext& context, PlanKey&& key) {
  auto& cache = mesh.world().part<PlanCache>();
  if (auto* plan = cache.find(key)) return *plan;
  return cache.add(std::move(key), make_plan(mesh.world().part<RulesInUse>().get(), op, arguments, mesh, context));
}

void run_observed(const c10::OperatorHandle& op, Plan& plan, const Mesh& mesh, RunContext& context,
                  torch::jit::Stack& stack, size_t count) {
  const std::vector<c10::IValue> arguments(stack.end() - static_cast<ptrdiff_t>(count), stack.end());
  const auto id = context.next_op_id(op_name(op), mesh.world().parameter_names().module_of(arguments));
  const OpEvent event{id, op, arguments, plan};
  auto& world = mesh.world();
  world.observers().notify([&](Observer& observer) { observer.before_op(event); });
  const size_t below = stack.size() - count;
  run_plan(op, plan, mesh, context, stack, count);
  const std::span<const c10::IValue> results(stack.data() + below, stack.size() - below);
  world.observers().notify([&](Observer& observer) { observer.after_op(event, results); });
}

struct Planned {
  Plan& plan;
  const Mesh& mesh;
};

Planned plan_of(const c10::OperatorHandle& op, std::span<const c10::IValue> arguments, const RunContext& context) {
  KeyBuilder builder;
  builder.put(reinterpret_cast<int64_t>(&op.schema()));
  for (const auto& argument : arguments) builder.add(argument);
  const Mesh& mesh = builder.mesh ? *builder.mesh : context.mesh();
  builder.put(reinterpret_cast<int64_t>(&mesh));
  if (!builder.mesh && sizes_from_scalars(op, mesh)) builder.add_numbers(arguments);
  if (mesh.world().canonical()) builder.put(context.rows().count);  // trees over the batch depend on it
  const PlainTensors guard;
  return {find_plan(op, arguments, mesh, context, std::move(builder.key)), mesh};
}

/// The functional op, and a copy into the target (Plan::written_apart).
void write_apart(const Plan& plan, torch::jit::Stack& stack, size_t count) {
  const std::string name = plan.rule->op;
  const auto dot = std::min(name.find('.'), name.size());
  const auto functional = c10::Dispatcher::singleton().findSchemaOrThrow(
      ("aten::" + name.substr(0, dot)).c_str(), dot == name.size() ? "" : name.substr(dot + 1).c_str());
  const size_t first = stack.size() - count;
  const auto target = stack[first].toTensor();
  torch::jit::Stack arguments(stack.begin() + static_cast<ptrdiff_t>(first), stack.end());
  arguments.resize(functional.schema().arguments().size());
  functional.callBoxed(arguments);
  target.copy_(arguments.at(0).toTensor());
  stack.resize(first);
  stack.emplace_back(target);
}

std::span<const c10::IValue> top(const torch::jit::Stack& stack, size_t count) {
  return {stack.data() + (stack.size() - count), count};
}

/// From what its first run kept, in place of the op.
void give(KeptResults& kept, const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const PlainTensors guard;
  auto results = kept.give(op_name(op));
  torch::jit::drop(stack, op.schema().arguments().size());
  std::move(results.begin(), results.end(), std::back_inserter(stack));
}

void dispatch_op(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  auto& context = RunContext::current();
  const auto [plan, mesh] = plan_of(op, top(*stack, count), context);
  if (plan.written_apart) [[unlikely]]
    return write_apart(plan, *stack, count);
  const PlainTensors guard;
  if (!mesh.world().observers().empty()) return run_observed(op, plan, mesh, context, *stack, count);
  if (mesh.world().transport()) context.set_uncounted_op(op_name(op));  // for who fails, and what waits
  run_plan(op, plan, mesh, context, *stack, count);
}

}  // namespace

void dispatch(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  auto* kept = KeptResults::current();
  if (!kept || !kept->takes(op_name(op))) [[likely]]
    return dispatch_op(op, stack);
  if (kept->gives()) return give(*kept, op, *stack);
  const size_t below = stack->size() - op.schema().arguments().size();
  dispatch_op(op, stack);
  kept->keep(op_name(op), std::span(*stack).subspan(below));
}

void dispatch_within_op(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  auto& context = RunContext::current();
  const auto [plan, mesh] = plan_of(op, top(stack, count), context);
  const PlainTensors guard;
  run_plan(op, plan, mesh, context, stack, count);
}

}  // namespace lockstep
