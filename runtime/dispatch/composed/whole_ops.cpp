#include "runtime/dispatch/composed/whole_ops.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "runtime/context/traffic.h"
#include "runtime/context/world.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rule_set.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

/// Of which canonical numerics has those that `exact` names.
struct WholeOp {
  std::string_view op;
  bool exact;
  /// What is to be put right in the result of these arguments.
  void (*mend)(std::span<const c10::IValue> given, at::Tensor& result) = nullptr;
};

/// Where indices name one place twice LibTorch's threads race for it, and ranks may differ. Here the last one has it.
void write_in_order(std::span<const c10::IValue> given, at::Tensor& result) {
  const auto values = given[0].toTensor(), indices = given[1].toTensor();
  if (values.numel() == 0) return;
  const auto pooled = static_cast<int64_t>(given[2].toIntList().size());
  const auto by_plane = [&](const at::Tensor& x) { return x.flatten(-pooled).flatten(0, -2); };
  const auto planes = by_plane(at::zeros(result.sizes(), result.options()));
  result = planes.scatter_(1, by_plane(indices), by_plane(values)).view(result.sizes());
}

constexpr WholeOp kOps[] = {
    {"_cdist_backward", false},
    {"_cdist_forward", false},
    {"_cholesky_solve_helper", false},
    {"_ctc_loss", false},
    {"_ctc_loss_backward", false},
    {"_embedding_bag", false},
    {"_embedding_bag_dense_backward", false},
    {"_embedding_bag_per_sample_weights_backward", false},
    {"_histogramdd_bin_edges", false},
    {"_histogramdd_from_bin_cts", false},
    {"_histogramdd_from_bin_tensors", false},
    {"_pdist_backward", false},
    {"_pdist_forward", false},
    {"_segment_reduce_backward", false},
    {"_unique", true},
    {"_unique2", true},
    {"bincount", true},
    {"channel_shuffle", true},
    {"cholesky", false},
    {"cholesky_inverse", false},
    {"col2im", false},
    {"equal", true},
    {"geqrf", false},
    {"grid_sampler_2d", false},
    {"grid_sampler_2d_backward", false},
    {"grid_sampler_3d", false},
    {"grid_sampler_3d_backward", false},
    {"hash_tensor", true},
    {"histc", false},
    {"histogram.bin_ct", false},
    {"histogram.bins_tensor", false},
    {"im2col", false},
    {"linalg_householder_product", false},
    {"linalg_lstsq", false},
    {"linalg_solve_triangular", false},
    {"linspace.Scalar_Tensor", false},
    {"linspace.Tensor_Scalar", false},
    {"linspace.Tensor_Tensor", false},
    {"log_sigmoid_backward", false},
    {"log_sigmoid_forward", false},
    {"logspace.Scalar_Tensor", false},
    {"logspace.Tensor_Scalar", false},
    {"logspace.Tensor_Tensor", false},
    {"lu_unpack", false},
    {"masked_select", true},
    {"max_pool3d_with_indices", false},
    {"max_pool3d_with_indices_backward", false},
    {"max_unpool2d", true, write_in_order},
    {"max_unpool3d", true, write_in_order},
    {"multi_margin_loss", false},
    {"multi_margin_loss_backward", false},
    {"multilabel_margin_loss_backward", false},
    {"multilabel_margin_loss_forward", false},
    {"nll_loss2d_backward", false},
    {"nll_loss2d_forward", false},
    {"nonzero", true},
    {"nonzero_static", true},
    {"ormqr", false},
    {"reflection_pad2d", true},
    {"renorm", false},
    {"repeat_interleave.Tensor", true},
    {"searchsorted.Scalar", true},
    {"searchsorted.Tensor", true},
    {"segment_reduce", false},
    {"unique_consecutive", true},
    {"unique_dim", true},
    {"unique_dim_consecutive", true},
};

const WholeOp* find(std::string_view op) {
  const auto* found = std::lower_bound(std::begin(kOps), std::end(kOps), op,
                                       [](const WholeOp& each, std::string_view name) { return each.op < name; });
  return found != std::end(kOps) && found->op == op ? found : nullptr;
}

class WholeCall {
 public:
  WholeCall(const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : op_(op), stack_(stack), first_(stack.size() - op.schema().arguments().size()) {}

  void run() {
    take_operands();
    LOCKSTEP_CHECK(mesh_, "{} without an operand on a mesh", op_name(op_));
    check();
    std::vector<c10::IValue> arguments(stack_.begin() + static_cast<ptrdiff_t>(first_), stack_.end());
    for (size_t i = 0; i < operands_.size(); ++i) set_slot(arguments, slots_[i], whole(operands_[i]));
    name_where_results_lie(arguments);
    compute(arguments);
    stack_.resize(first_);
    for (auto& value : arguments) stack_.push_back(on_mesh(value));
  }

 private:
  /// Results in place of the arguments.
  void compute(std::vector<c10::IValue>& arguments) const {
    const PlainTensors guard;
    const auto given = arguments;
    op_.callBoxed(arguments);
    const auto* op = find(op_name(op_));
    if (!op || !op->mend) return;
    auto result = arguments.at(0).toTensor();
    op->mend(given, result);
    arguments[0] = result;
  }

  /// Of ops that make tensors: every rank makes them on its own device, in the domain's storage.
  void name_where_results_lie(std::vector<c10::IValue>& arguments) {
    if (!has_argument(op_.schema(), "dtype") || !has_argument(op_.schema(), "device")) return;
    auto &dtype = arguments[argument_number(op_.schema(), "dtype")],
         &device = arguments[argument_number(op_.schema(), "device")];
    declared_ = dtype.isNone() ? c10::get_default_dtype_as_scalartype() : dtype.toScalarType();
    dtype = static_cast<int64_t>(stored(mesh_->world().domain(), *declared_));
    device = mesh_->world().shard_device();
  }

  c10::IValue on_mesh(const c10::IValue& value) const {
    if (value.isTensor()) return replicated(value.toTensor());
    if (!value.isTensorList()) return value;
    auto tensors = value.toTensorVector();
    for (auto& tensor : tensors) tensor = replicated(tensor);
    return tensors;
  }

  void take_operands() {
    const std::span<const c10::IValue> given(stack_.data() + first_, stack_.size() - first_);
    for_each_tensor(given, [&](const Slot& slot, const at::Tensor& tensor) {
      if (is_sharded(tensor) && !mesh_) mesh_ = &spec_of(tensor).layout.mesh();
      slots_.push_back(slot);
      operands_.push_back(tensor);
    });
  }

  void check() const {
    const auto& name = op_name(op_);
    const auto& world = mesh_->world();
    if (world.canonical() && !is_canonical_whole_op(name))
      fail<BadInput>("{} has no canonical form; set numerics.mode = \"native\", or use an op that has one", name);
    if (world.canonical() && world.shard_device().is_cuda()) refuse_on_gpu(name);
    if (world.meta())
      fail<BadInput>("{}: the result depends on values, and this run is without values (--dry-run)", name);
  }

  at::Tensor whole(const at::Tensor& operand) const {
    if (!is_sharded(operand)) return operand;
    const auto& spec = spec_of(operand);
    auto& world = spec.layout.mesh().world();
    if (&spec.layout.mesh() != mesh_)
      fail<BadInput>("{}: operands on two meshes, {} and {}", op_name(op_), mesh_->text(), spec.layout.mesh().text());
    if (!spec.all_replicate && world.policy().strict)
      fail<BadInput>("{} would gather {} without being asked to (parallelism.strict); redistribute() it before the op",
                     op_name(op_), spec.text());
    if (!spec.all_replicate) world.traffic().add_implicit_gather({op_name(op_), "every rank computes all of it"});
    return gather(operand).contiguous();
  }

  /// In the float64 domain floats are declared as the first operand is.
  at::Tensor replicated(const at::Tensor& result) const {
    const auto plain = result.to(mesh_->world().shard_device());
    const auto declared = declared_.value_or(operands_[0].scalar_type());
    const bool same = plain.scalar_type() == stored(mesh_->world().domain(), declared);
    const auto* spec =
        mesh_->specs().intern(Layout::replicated(*mesh_), plain.sizes().vec(), same ? declared : plain.scalar_type());
    Shards shards;
    for (size_t i = 0; i < mesh_->local_count(); ++i)
      shards.push_back(i == 0 ? plain.contiguous() : plain.clone(at::MemoryFormat::Contiguous));
    return make_sharded(spec, std::move(shards));
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  size_t first_;
  const Mesh* mesh_ = nullptr;
  std::optional<c10::ScalarType> declared_;
  std::vector<Slot> slots_;
  std::vector<at::Tensor> operands_;
};

}  // namespace

bool is_whole_op(const std::string& op) { return find(op) != nullptr; }

bool is_canonical_whole_op(const std::string& op) {
  const auto* found = find(op);
  return found && found->exact;
}

void dispatch_whole(const c10::OperatorHandle& op, torch::jit::Stack* stack) { WholeCall(op, *stack).run(); }

}  // namespace lockstep
