#include "runtime/planning/make_plan.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/context/run_context.h"
#include "runtime/planning/check_operands.h"
#include "runtime/planning/choose_layouts.h"
#include "runtime/planning/infer_results.h"
#include "runtime/planning/ordered_sums.h"
#include "runtime/planning/plan_cache.h"
#include "runtime/planning/rule_set.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using Arguments = std::span<const c10::IValue>;

class Maker {
 public:
  Maker(const RuleSet& rules, const c10::OperatorHandle& op, Arguments arguments, const Mesh& mesh,
        const RunContext& context)
      : rules_(rules),
        op_(op),
        mesh_(mesh),
        context_(context),
        call_{op_name(op), op.schema(), arguments, context.rows().count},
        plan_(std::make_unique<Plan>()) {}

  std::unique_ptr<Plan> make() {
    read_arguments();
    find_rule();
    infer_results(op_, call_, *plan_);
    check_real();
    plan_->widens_integers = widens_integers();
    if (plan_->slots.empty())
      replicate_results();
    else if (plan_->rule->traits & Rule::kReadsSizesOnly)
      lie_like_operand();
    else
      plan_layouts();
    return std::move(plan_);
  }

 private:
  void read_arguments() {
    plan_->operand_of.assign(call_.arguments.size(), -1);
    for_each_tensor(call_.arguments, [&](const Slot& slot, const at::Tensor& tensor) { read_tensor(slot, tensor); });
    for (size_t i = 0; i < call_.arguments.size(); ++i) {
      const auto& argument = call_.schema.arguments()[i];
      if (argument.alias_info() && argument.alias_info()->isWrite()) {
        const int slot = slot_of(static_cast<int>(i));
        if (plan_->written < 0) plan_->written = slot;
        plan_->all_written.push_back(slot);
      }
      // A factory without a dtype makes the default one, which the domain may store as another.
      const bool given = !call_.arguments[i].isNone() || plan_->slots.empty();
      if (given && names_dtype(argument)) plan_->dtype_arguments.push_back(static_cast<int>(i));
      if (call_.arguments[i].isDevice()) plan_->device_arguments.push_back(static_cast<int>(i));
    }
    call_.slots = plan_->slots;
  }

  static bool names_dtype(const c10::Argument& argument) {
    auto type = argument.real_type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    return type->kind() == c10::TypeKind::ScalarTypeType;
  }

  void read_tensor(const Slot& slot, const at::Tensor& tensor) {
    const bool on_mesh = is_sharded(tensor);
    if (!on_mesh && tensor.dim() > 0)
      fail<BadInput>("{}: argument {} is a plain {} tensor of {} dimensions beside tensors of mesh {}; distribute() it",
                     call_.op, call_.schema.arguments()[static_cast<size_t>(slot.argument)].name(),
                     c10::str(tensor.device()), tensor.dim(), mesh_.text());
    const auto* spec = on_mesh ? &spec_of(tensor) : nullptr;
    if (spec && &spec->layout.mesh() != &mesh_)
      fail<BadInput>("{}: operands on two meshes, {} and {}", call_.op, mesh_.text(), spec->layout.mesh().text());
    if (slot.element < 0) plan_->operand_of[static_cast<size_t>(slot.argument)] = static_cast<int>(plan_->slots.size());
    plan_->slots.push_back(slot);
    plan_->given.push_back(spec);
    call_.operand_sizes.push_back(tensor.sizes().vec());
    call_.operand_dtypes.push_back(tensor.scalar_type());
  }

  int slot_of(int argument) const {
    for (size_t i = 0; i < plan_->slots.size(); ++i)
      if (plan_->slots[i].argument == argument) return static_cast<int>(i);
    return -1;
  }

  void find_rule() {
    plan_->rule = rules_.find(std::string(call_.op));
    if (!plan_->rule)
      fail<BadInput>(
          "{} has no sharding rule; add a row to the file of its family in runtime/planning/rules/ (docs/rules.md "
          "shows how)",
          call_.op);
    if (mesh_.world().canonical())
      require_canonical_form(*plan_->rule, call_.op, mesh_.world().shard_device().is_cuda());
    plan_->local = plan_->rule->local;
  }

  void check_real() const {
    if (!(plan_->rule->traits & Rule::kRealOnly)) return;
    bool complex = std::any_of(call_.operand_dtypes.begin(), call_.operand_dtypes.end(), c10::isComplexType);
    for (const auto& shape : call_.results) complex |= c10::isComplexType(shape.dtype);
    if (complex)
      fail<BadInput>("{} of complex numbers has no canonical form; set numerics.mode = \"native\"", call_.op);
  }

  void replicate_results() {
    for (const auto& shape : call_.results) plan_->results.push_back(intern(Layout::replicated(mesh_), shape));
  }

  /// As the operand, where sizes agree, without its unfinished sums.
  void lie_like_operand() {
    keep_packing(*plan_->rule, call_, plan_->given);
    plan_->wanted = plan_->given;
    const auto& given = *plan_->given[0];
    auto placements = Layout::replicated(mesh_).placements();
    for (const auto& shape : call_.results) {
      for (int axis = 0; axis < given.layout.axis_count() && shape.sizes == given.sizes; ++axis)
        if (given.layout[axis].is_shard()) placements[static_cast<size_t>(axis)] = given.layout[axis];
      plan_->results.push_back(intern(Layout(mesh_, placements), shape));
    }
  }

  const TensorSpec* intern(const Layout& layout, const ResultShape& shape) const {
    if (shape.strides.empty()) return mesh_.specs().intern(layout, shape.sizes, shape.dtype, shape.packing);
    return mesh_.specs().intern(layout, shape.sizes, shape.strides, shape.dtype, shape.packing);
  }

  void plan_layouts() {
    const OpSharding sharding = op_sharding_of(*plan_->rule, call_);
    LOCKSTEP_CHECK_EQ(sharding.operands.size(), plan_->slots.size(), "{}", call_.op);
    LOCKSTEP_CHECK_EQ(sharding.results.size(), call_.results.size(), "{}", call_.op);
    plan_->batch = sharding.batch;
    keep_packing(*plan_->rule, call_, plan_->given);
    const bool canonical = mesh_.world().canonical();
    if (canonical && append_to_formal_sum()) return;
    const bool ordered =
        canonical && sharding.reduction == Reduction::kSum && !sharding.disjoint && any_floating_result();
    LayoutQuery input{mesh_, sharding, plan_->given, plan_->written, canonical, ordered};
    for (const auto& shape : call_.results) input.result_sizes.push_back(shape.sizes);
    auto choice = choose_layouts(input);
    if (!choice && may_write_apart()) return write_apart();
    if (!choice && reduce_written()) {
      input.given[static_cast<size_t>(plan_->written)] = plan_->written_reduced;
      choice = choose_layouts(input);
    }
    if (!choice) refuse();
    for (size_t i = 0; i < plan_->slots.size(); ++i) want(input, i, choice->operands[i]);
    for (size_t r = 0; r < call_.results.size(); ++r)
      plan_->results.push_back(intern(choice->results[r], call_.results[r]));
    const auto& returns = call_.schema.returns();
    plan_->is_view = !returns.empty() && returns[0].alias_info() && !returns[0].alias_info()->isWrite();
    const bool computed = (plan_->rule->traits & Rule::kComputedView) != 0;
    plan_->detached_view = plan_->is_view && (computed || plan_->wanted[0] != plan_->given[0]);
    if (plan_->written >= 0) check_written();
  }

  /// The functional op, whose result is copied into the target, gives what an in-place op would: the copy moves nothing
  /// but what the target lacks. Its operands may be gathered, under the policy of the functional op's plan.
  bool may_write_apart() const {
    constexpr unsigned kNever = Rule::kRandom | Rule::kReadsSizesOnly;
    return plan_->all_written.size() == 1 && plan_->written == 0 && !plan_->given[0]->any_partial &&
           (plan_->rule->traits & kNever) == 0 && !is_pointwise(*plan_->rule) && !mesh_.world().policy().strict &&
           call_.op != plan_->rule->op && !call_.schema.returns().empty();
  }

  void write_apart() {
    plan_->written_apart = true;
    plan_->wanted = plan_->given;
    plan_->results.push_back(plan_->given[0]);
  }

  /// The nodes of both sides, one behind the other.
  static void append_nodes(const LocalCall& call, torch::jit::Stack& stack) {
    stack = {at::cat({call.tensor(stack, "self"), call.tensor(stack, "other")})};
  }

  bool append_to_formal_sum() {
    const bool adds = (plan_->rule->traits & Rule::kAdds) != 0 && plan_->written < 0;
    if (!adds || plan_->slots.size() != 2 || !plan_->given[0] || !plan_->given[1]) return false;
    const auto& alpha = call_.argument("alpha");
    const auto layout =
        alpha.isInt() && alpha.toInt() == 1 ? formal_sum(*plan_->given[0], *plan_->given[1]) : std::nullopt;
    if (!layout) return false;
    plan_->wanted = plan_->given;
    plan_->results.push_back(intern(*layout, call_.results[0]));
    plan_->local = append_nodes;
    return true;
  }

  bool widens_integers() const {
    if (mesh_.world().domain() != Domain::kFloat64 || !is_pointwise(*plan_->rule)) return false;
    const auto is_integer = [](c10::ScalarType dtype) { return c10::isIntegralType(dtype, /*includeBool=*/true); };
    return plan_->dtype_arguments.empty() && any_floating_result() &&
           std::all_of(call_.operand_dtypes.begin(), call_.operand_dtypes.end(), is_integer);
  }

  bool any_floating_result() const {
    return std::any_of(call_.results.begin(), call_.results.end(),
                       [](const ResultShape& shape) { return c10::isFloatingType(shape.dtype); });
  }

  void want(const LayoutQuery& input, size_t i, const Layout& layout) {
    const auto* given = plan_->given[i];
    if (!given) return plan_->wanted.push_back(nullptr);
    if (without_idle_units(layout, given->sizes) == given->layout) return plan_->wanted.push_back(given);
    const auto* wanted = with_layout(*given, layout);
    plan_->wanted.push_back(wanted);
    plan_->moves = true;
    check_policy(input, i, *wanted);
  }

  void check_policy(const LayoutQuery& input, size_t i, const TensorSpec& wanted) const {
    const auto& given = *plan_->given[i];
    std::string reason;
    for (const auto& move : plan_moves(given, wanted))
      if (reason.empty() && move.before->layout[move.axis].is_shard() && given.layout[move.axis].is_shard())
        reason = why_not_cut(input, i, move.axis);
    if (reason.empty()) return;
    auto& world = mesh_.world();
    if (world.policy().strict)
      fail<BadInput>(
          "{} ({}) would gather {} to {} without being asked to (parallelism.strict): {}; redistribute() it before "
          "the op",
          call_.op, context_.module(), given.text(), wanted.layout.text(), reason);
    world.traffic().add_implicit_gather({std::string(call_.op), reason});
  }

  /// An unfinished sum that an op writes, and is not linear in, is finished first: then it is what the op writes.
  bool reduce_written() {
    if (plan_->all_written.size() != 1) return false;
    const auto& given = *plan_->given[static_cast<size_t>(plan_->written)];
    if (!given.any_partial) return false;
    auto placements = given.layout.placements();
    for (auto& placement : placements)
      if (placement.is_partial()) placement = Placement::replicate();
    plan_->written_reduced = with_layout(given, Layout(mesh_, std::move(placements)));
    return true;
  }

  void check_written() const {
    const auto* written = plan_->given[static_cast<size_t>(plan_->written)];
    if (plan_->written_reduced) written = plan_->written_reduced;
    for (const int slot : plan_->all_written) {
      const auto* allowed = slot == plan_->written ? written : plan_->given[static_cast<size_t>(slot)];
      if (plan_->wanted[static_cast<size_t>(slot)] != allowed) refuse();
    }
    if (plan_->results[0]->layout != written->layout) refuse();
  }

  [[noreturn]] void refuse() const {
    fail<BadInput>("{} cannot run on {}: {}; redistribute() the operands first", call_.op, texts_of(plan_->given),
                   plan_->written >= 0 ? "the tensor that is written in place would have to move" : "no layout serves");
  }

  const RuleSet& rules_;
  const c10::OperatorHandle& op_;
  const Mesh& mesh_;
  const RunContext& context_;
  Call call_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace

const std::string& op_name(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<const void*, std::string> names;
  auto& name = names[&op.schema()];
  if (name.empty()) {
    const auto& full = op.operator_name();
    name = full.name.starts_with("aten::") ? full.name.substr(6) : full.name;
    if (!full.overload_name.empty()) name += "." + full.overload_name;
  }
  return name;
}

void set_slot(std::vector<c10::IValue>& arguments, const Slot& slot, const at::Tensor& tensor) {
  auto& value = arguments[static_cast<size_t>(slot.argument)];
  const auto with_tensor = [&](auto list) {
    list[static_cast<size_t>(slot.element)] = tensor;
    return c10::IValue(std::move(list));
  };
  if (slot.element < 0) return void(value = tensor);
  value = value.isTensorList() ? with_tensor(value.toTensorVector()) : with_tensor(value.toOptionalTensorVector());
}

std::unique_ptr<Plan> make_plan(const RuleSet& rules, const c10::OperatorHandle& op, Arguments arguments,
                                const Mesh& mesh, const RunContext& context) {
  return Maker(rules, op, arguments, mesh, context).make();
}

}  // namespace lockstep
