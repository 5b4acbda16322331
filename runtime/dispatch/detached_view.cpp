#include "runtime/dispatch/detached_view.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/dispatch/dispatch.h"
#include "runtime/local_calls/decomposition.h"
#include "runtime/plain/lazy_copy.h"
#include "runtime/planning/make_plan.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/memory_order.h"

namespace lockstep {
namespace {

at::Tensor nth(const torch::jit::Stack& results, size_t n) {
  return results[0].isTensor() ? results[n].toTensor() : results[0].toTensorVector()[n];
}

Shards replicated(const TensorSpec& spec, const Shards& shards) {
  return move_shards(spec, shards, *with_layout(spec, Layout::replicated(spec.layout.mesh())), "write through a view");
}

/// LibTorch does not write to a tensor that repeats elements.
void copy_once(const TensorSpec& spec, const at::Tensor& to, const at::Tensor& from) {
  without_repeats(spec, to).copy_(without_repeats(spec, from));
}

/// The same memory under a name of its own: squeeze_ and its like give the tensor other sizes, but not what are views
/// of it already.
at::Tensor as_it_is(const at::Tensor& tensor) {
  return at::Tensor(sharded(tensor).shallow_copy_and_detach(c10::VariableVersion(0), false));
}

class ViewCall : public DetachedView {
 public:
  ViewCall(const c10::OperatorHandle& op, std::span<const c10::IValue> arguments, size_t result)
      : op_(op), arguments_(arguments.begin(), arguments.end()), result_(result) {
    arguments_[0] = as_it_is(arguments_[0].toTensor());
  }

  void make_anew(ShardedTensorImpl& view) const override {
    torch::jit::Stack stack = arguments_;
    dispatch_within_op(op_, stack);
    auto& fresh = sharded(nth(stack, result_));
    view.become(&fresh.spec(), fresh.shards());
  }

  void check_writable() const override {
    const auto& base = sharded(arguments_[0].toTensor());
    const auto& spec = base.spec();
    if (spec.any_partial)
      fail<BadInput>("{}: in-place write to a view of {}, an unfinished sum; redistribute() it first", op_name(op_),
                     spec.text());
    if (base.shards()->is_read_only())
      fail<BadInput>("{}: {} is a gathered parameter, shared and read-only; write to the parameter itself",
                     op_name(op_), spec.text());
    if (spec.layout.mesh().world().policy().strict)
      fail<BadInput>(
          "{}: {} would be gathered without being asked to (parallelism.strict): {}; redistribute() it before",
          op_name(op_), spec.text(), kReason);
    base.check_writable();
  }

  void write_back(ShardedTensorImpl& view) const override {
    auto& base = sharded(arguments_[0].toTensor());
    base.bring_up_to_date();
    base.spec().layout.mesh().world().traffic().add_implicit_gather({op_name(op_), kReason});
    const auto whole = replicated(base.spec(), base.shards()->local_tensors());
    const auto values = replicated(view.spec(), view.shards()->local_tensors());
    const auto& shards = base.shards()->local_tensors();
    base.spec().layout.mesh().world().part<Decomposition>().before_write(shards);
    for (size_t i = 0; i < whole.size(); ++i) {
      const auto changed = in_memory_order(base.spec(), whole[i]);
      torch::jit::Stack stack = arguments_;
      stack[0] = changed;
      op_.callBoxed(stack);
      copy_once(view.spec(), nth(stack, result_), values[i]);  // a plain view, so `changed` is written
      before_write(shards[i]);
      copy_once(base.spec(), shards[i], cut_out(base.spec(), changed, i));
    }
    base.written();
  }

 private:
  static constexpr const char* kReason = "a write through a view that no view of its shards expresses";

  c10::OperatorHandle op_;
  std::vector<c10::IValue> arguments_;
  size_t result_;
};

}  // namespace

std::shared_ptr<DetachedView> make_detached_view(const c10::OperatorHandle& op, std::span<const c10::IValue> arguments,
                                                 size_t result) {
  return std::make_shared<ViewCall>(op, arguments, result);
}

}  // namespace lockstep
