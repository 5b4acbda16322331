#include "runtime/dispatch/run_plan.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/dispatch/detached_view.h"
#include "runtime/exchange/exchanges_in_flight.h"
#include "runtime/kernels/products/shared_factors.h"
#include "runtime/local_calls/products_in_parts.h"
#include "runtime/local_calls/reused_stack.h"
#include "runtime/plain/lazy_copy.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rule.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/memory_order.h"
#include "runtime/tensor/packed_rows.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

/// A Partial that was reduced for one reader is not reduced again for the next, as long as nothing of its family is
/// written. Without views it even stays reduced. What the program did decides, as on all ranks, not who still holds
/// what.
void keep_reduced(ShardedTensorImpl& self, const TensorSpec* reduced, const std::shared_ptr<ShardSet>& shards) {
  auto& sums = *self.shards();
  if (!self.spec().any_partial || reduced->any_partial) return;
  sums.keep_reduced(reduced, shards);
  if (!sums.is_view() && !sums.has_views() && self.spec().strides == reduced->strides) self.become(reduced, shards);
}

class Runner {
 public:
  Runner(const c10::OperatorHandle& op, Plan& plan, const Mesh& mesh, RunContext& context, torch::jit::Stack& stack,
         size_t count)
      : op_(op),
        plan_(plan),
        mesh_(mesh),
        context_(context),
        world_(mesh.world()),
        stack_(stack),
        count_(count),
        first_(stack.size() - count),
        calls_{op, plan, world_, context, {arguments(), count}} {}

  void run() {
    collect_operands();
    results_.resize(plan_.results.size());
    if (plan_.rule && plan_.rule->traits & Rule::kRandom) name_stream();
    if (!world_.part<Decomposition>().is_on() || !run_in_parts()) run_all_local();
    plan_.checked = true;
    finish();
  }

 private:
  const c10::IValue* arguments() const { return stack_.data() + first_; }

  bool run_in_parts() {
    auto product = product_of_arriving_rows(calls_);
    if (product.defined()) return results_[0].push_back(std::move(product)), true;
    return (put_off_ = product_put_off(calls_)) != nullptr;
  }

  void run_all_local() {
    const kernels::SharedFactors shared(bytes_in_common());
    for (size_t i = 0; i < mesh_.local_count(); ++i) run_local(i);
  }

  /// Of operands that are large enough for it to matter: what several local ranks have in common, as gathered weights.
  std::vector<kernels::SharedFactors::Bytes> bytes_in_common() const {
    std::vector<kernels::SharedFactors::Bytes> result;
    if (mesh_.local_count() < 2 || world_.meta() || !plan_.all_written.empty()) return result;
    for (const auto& set : calls_.operands)
      if (set) add_bytes_in_common(set->local_tensors(), result);
    return result;
  }
  static void add_bytes_in_common(const Shards& shards, std::vector<kernels::SharedFactors::Bytes>& result) {
    constexpr size_t kLeast = size_t{1} << 14;
    const auto& first = shards[0];
    if (first.dim() < 2 || first.nbytes() < kLeast || !first.is_cpu()) return;
    const auto lies_there = [&](const at::Tensor& other) { return other.const_data_ptr() == first.const_data_ptr(); };
    if (std::none_of(shards.begin() + 1, shards.end(), lies_there)) return;  // then the others share nothing either
    std::vector<kernels::SharedFactors::Bytes> all;
    for (const auto& shard : shards)
      if (shard.is_non_overlapping_and_dense()) all.push_back(bytes_of(shard));
    std::ranges::sort(all);
    const auto next = [&](auto from) { return std::adjacent_find(from, all.end()); };
    for (auto at = next(all.begin()); at != all.end(); at = next(std::upper_bound(at, all.end(), *at)))
      result.push_back(*at);
  }
  static kernels::SharedFactors::Bytes bytes_of(const at::Tensor& shard) {
    const auto* begin = static_cast<const std::byte*>(shard.const_data_ptr());
    return {begin, begin + shard.nbytes()};
  }

  void collect_operands() {
    calls_.operands.resize(plan_.slots.size());
    for (size_t i = 0; i < plan_.slots.size(); ++i) {
      if (!plan_.given[i]) continue;
      auto& self = operand(i);
      calls_.operands[i] = plan_.wanted[i] == plan_.given[i] || plan_.wanted[i]->layout == self.spec().layout
                               ? self.shards()
                               : moved(self, plan_.wanted[i]);
    }
    collect_present();
    if (plan_.written_reduced) check_reduced();
    for (const int slot : plan_.all_written) prepare_write(static_cast<size_t>(slot));
  }

  /// Of packed rows: all operands' are of the same cells.
  void collect_present() {
    for (const auto& set : calls_.operands) {
      if (!set || !set->is_packed() || set->shared_present() == calls_.present) continue;
      if (calls_.present && !world_.meta() && !same_cells(*calls_.present, set->present()))
        fail<BadInput>("{} has operands whose rows are of different cells", op_name(op_));
      calls_.present = set->shared_present();
    }
  }

  /// A view, or what has views, cannot be finished alone: the others would not see what is written.
  void check_reduced() const {
    const auto& self = operand(static_cast<size_t>(plan_.written));
    if (&self.spec() != plan_.written_reduced)
      fail<BadInput>("{} writes to {}, an unfinished sum that is a view or has views; redistribute() it first",
                     op_name(op_), self.spec().text());
  }

  ShardedTensorImpl& operand(size_t i) const {
    at::Tensor storage;
    return sharded(tensor_in(arguments(), plan_.slots[i], storage));
  }

  void prepare_write(size_t slot) {
    operand(slot).check_writable();
    auto& set = *calls_.operands[slot];
    if (set.is_read_only())
      fail<BadInput>("{}: {} is a gathered parameter, shared and read-only; write to the parameter itself",
                     op_name(op_), plan_.given[slot]->text());
    if (world_.meta()) return;
    world_.part<Decomposition>().before_write(set.local_tensors());
    for (const auto& shard : set.local_tensors()) before_write(shard);
  }

  /// All ranks of a call draw from one stream, named by step, module and the number of the draw in the module's
  /// call. It is counted on ranks that have no part of the tensor, too: the next draw has the same name everywhere.
  void name_stream() {
    const std::span<const c10::IValue> given(arguments(), count_);
    refuse_generator(given);
    if (!plan_.rule->draws || plan_.rule->draws(op_.schema(), given)) calls_.stream = context_.next_random_stream();
  }

  /// It would not be asked.
  void refuse_generator(std::span<const c10::IValue> given) const {
    if (!has_argument(op_.schema(), "generator") || given[argument_number(op_.schema(), "generator")].isNone()) return;
    fail<BadInput>("{}: a generator is given, but a mesh's values follow from the run's seed; leave it out",
                   op_name(op_));
  }

  std::shared_ptr<ShardSet> moved(ShardedTensorImpl& self, const TensorSpec* target) const {
    if (auto kept = self.shards()->reduced_to(target)) {
      keep_reduced(self, target, kept);
      return kept;
    }
    auto set = lockstep::moved(self.spec(), *self.shards(), *target, op_name(op_));
    keep_reduced(self, target, set);
    return set;
  }

  void run_local(size_t index) {
    if (world_.meta()) return make_meta(index);
    calls_.fill(index, local_);
    calls_.call(index, local_);
    if (plan_.written >= 0) return write_local(index);
    size_t r = 0;
    for (auto& value : local_) {
      if (value.isTensor())
        take(r++, index, std::move(value).toTensor());
      else
        for (const at::Tensor& tensor : value.toTensorVector()) take(r++, index, tensor);
    }
    LOCKSTEP_CHECK_EQ(r, results_.size(), "{}", op_name(op_));
  }

  /// A local call that gave a tensor of its own, as the functional op does, has not written yet.
  void write_local(size_t index) {
    if (!plan_.local || op_.schema().returns().size() != 1 || local_.size() != 1) return;
    const auto& shard = calls_.operands[static_cast<size_t>(plan_.written)]->local_tensors()[index];
    const auto& result = local_.back().toTensor();
    if (!result.is_same(shard)) at::Tensor(shard).copy_(result);
  }

  void make_meta(size_t index) {
    for (const auto& operand : calls_.operands)
      if (operand) operand->local_tensors();  // what was freed is gathered again, and counted
    if (plan_.written >= 0) return;
    for (size_t r = 0; r < results_.size(); ++r)
      results_[r].push_back(at::empty(plan_.results[r]->expected_sizes(index),
                                      at::TensorOptions().dtype(storage(*plan_.results[r])).device(c10::kMeta)));
    if (plan_.rule && plan_.rule->traits & Rule::kPacks)
      calls_.made_present.push_back(at::empty(spec_of_cells(*plan_.results[0])->local_sizes[index],
                                              at::TensorOptions().dtype(c10::kBool).device(c10::kMeta)));
  }

  void take(size_t r, size_t index, at::Tensor tensor) {
    const auto& spec = *plan_.results[r];
    if (spec.any_partial) tensor = tensor.to(storage(spec));
    if (!plan_.checked || spec.is_packed()) check_local(spec, index, tensor);
    if (plan_.reorders && !is_in_memory_order(spec, tensor)) tensor = in_memory_order(spec, tensor);
    results_[r].push_back(std::move(tensor));
  }

  void check_local(const TensorSpec& spec, size_t index, const at::Tensor& tensor) const {
    plan_.reorders |= (!plan_.is_view || plan_.detached_view) && !is_in_memory_order(spec, tensor);
    if (!fits(spec, index, tensor) || tensor.scalar_type() != storage(spec))
      fail<InternalError>("rule of {}: local rank {} gave {} {}, the plan says {} {} of {}", op_name(op_), index,
                          c10::toString(tensor.scalar_type()), c10::str(tensor.sizes()), c10::toString(storage(spec)),
                          c10::str(c10::IntArrayRef(spec.local_sizes[index])), spec.text());
  }

  bool fits(const TensorSpec& spec, size_t index, const at::Tensor& tensor) const {
    if (!spec.is_packed()) return tensor.sizes() == c10::IntArrayRef(spec.local_sizes[index]);
    return tensor.sizes() ==
           sizes_of_rows(spec, index,
                         calls_.made_present.empty() ? (*calls_.present)[index] : calls_.made_present[index]);
  }

  void finish() {
    if (!calls_.made_present.empty()) calls_.present = std::make_shared<const Shards>(std::move(calls_.made_present));
    for (const int slot : plan_.all_written) operand(static_cast<size_t>(slot)).written();
    if (plan_.written >= 0) {
      auto self = stack_[first_ + static_cast<size_t>(plan_.slots[static_cast<size_t>(plan_.written)].argument)];
      torch::jit::drop(stack_, count_);
      if (!op_.schema().returns().empty()) stack_.push_back(std::move(self));
      return;
    }
    if (plan_.is_view) remember_base();
    torch::jit::drop(stack_, count_);
    if (plan_.returns_list) return push_list();
    for (size_t r = 0; r < results_.size(); ++r) stack_.emplace_back(wrap(r));
  }

  /// A view of a view that is kept as a call is kept so, too.
  void remember_base() {
    auto& base = operand(0);
    base_ = base.shards();
    if (plan_.detached_view || base.is_detached_view()) view_of_.assign(arguments(), arguments() + count_);
  }

  void push_list() {
    std::vector<at::Tensor> wrapped;
    for (size_t r = 0; r < results_.size(); ++r) wrapped.push_back(wrap(r));
    stack_.emplace_back(std::move(wrapped));
  }

  at::Tensor wrap(size_t r) {
    auto tensor = put_off_ ? make_sharded(plan_.results[r], std::move(put_off_))
                           : make_sharded(plan_.results[r], std::move(results_[r]));
    if (plan_.results[r]->is_packed()) sharded(tensor).shards()->set_present(calls_.present);
    if (!base_) return tensor;
    auto& self = sharded(tensor);
    self.shards()->make_view_of(base_);
    if (!view_of_.empty()) self.detach_view(make_detached_view(op_, view_of_, r));
    return tensor;
  }

  const c10::OperatorHandle& op_;
  Plan& plan_;
  const Mesh& mesh_;
  RunContext& context_;
  World& world_;
  torch::jit::Stack& stack_;
  size_t count_, first_;
  LocalCalls calls_;
  c10::SmallVector<Shards, 3> results_;
  std::shared_ptr<ShardSet> put_off_;  ///< of a product
  std::shared_ptr<ShardSet> base_;     ///< of a view
  std::vector<c10::IValue> view_of_;   ///< the call, of a view that is kept as one
  ReusedStack reused_;
  torch::jit::Stack& local_ = *reused_;
};

}  // namespace

void run_plan(const c10::OperatorHandle& op, Plan& plan, const Mesh& mesh, RunContext& context,
              torch::jit::Stack& stack, size_t count) {
  Runner(op, plan, mesh, context, stack, count).run();
  advance_exchanges(mesh.world());
}

}  // namespace lockstep
