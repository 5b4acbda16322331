// Why ops of LibTorch's have no rule: what `lockstep rules --missing` says.
#include <algorithm>
#include <array>

#include "runtime/dispatch/functional_forms.h"
#include "runtime/dispatch/native_kernels.h"
#include "runtime/dispatch/service.h"
#include "runtime/planning/make_plan.h"

namespace lockstep {
namespace {

struct Reason {
  std::string_view part;  ///< of the op's name, or of its schema
  const char* text;
};

constexpr const char* kStorage = "changes what a tensor's storage is; a sharded tensor's is its shards'";

constexpr const char* kRejects =
    "draws by rejection, from one generator one number after the other; distribute() what one device draws";

constexpr const char* kSparse = "for sparse tensors; a mesh holds dense ones";

/// Whole names: others have them as a part, such as max_pool2d_with_indices.
constexpr std::string_view kOfSparse[] = {"indices",      "values",      "_indices",      "_values",
                                          "indices_copy", "values_copy", "_indices_copy", "_values_copy",
                                          "_nnz",         "_dimI",       "_dimV"};

/// LibTorch's own decompositions of these, which nobody gets in front of.
constexpr Reason kOfStorage[] = {
    {"linalg_matrix_power.out", "LibTorch's decomposition reads a storage; copy the result"},
    {"matmul.out", "LibTorch's decomposition reads a storage; copy the result"},
    {"matrix_power.out", "LibTorch's decomposition reads a storage; copy the result"},
    {"rand.generator_out", "LibTorch's decomposition resizes a storage; copy the result"},
    {"randn.generator_out", "LibTorch's decomposition resizes a storage; copy the result"},
    {"randn.out", "LibTorch's decomposition resizes a storage; copy the result"},
};

const Reason* of_storage(std::string_view op) {
  const auto* found =
      std::find_if(std::begin(kOfStorage), std::end(kOfStorage), [&](const Reason& each) { return each.part == op; });
  return found == std::end(kOfStorage) ? nullptr : found;
}

/// What names have in them; the first that fits.
constexpr Reason kByName[] = {
    {"sparse", kSparse},
    {"_coo_", kSparse},
    {"_csr_", kSparse},
    {"coalesce", kSparse},
    {"crow_indices", kSparse},
    {"ccol_indices", kSparse},
    {"col_indices", kSparse},
    {"row_indices", kSparse},
    {"_cslt_", kSparse},
    {"to_dense", kSparse},
    {"dense_dim", kSparse},
    {"hspmm", kSparse},
    {"spmm", kSparse},
    {"sspaddmm", kSparse},
    {"smm", kSparse},
    {"_spdiags", kSparse},
    {"nested", "for nested tensors; a mesh holds dense ones"},
    {"jagged", "for nested tensors; a mesh holds dense ones"},
    {"padded", "for nested tensors; a mesh holds dense ones"},
    {"quant", "for quantized tensors; a mesh holds numbers"},
    {"qparams", "for quantized tensors; a mesh holds numbers"},
    {"q_scale", "for quantized tensors; a mesh holds numbers"},
    {"q_per_channel", "for quantized tensors; a mesh holds numbers"},
    {"q_zero_point", "for quantized tensors; a mesh holds numbers"},
    {"qscheme", "for quantized tensors; a mesh holds numbers"},
    {"int_repr", "for quantized tensors; a mesh holds numbers"},
    {"fbgemm", "for quantized tensors; a mesh holds numbers"},
    {"int4pack", "for packed 4-bit weights, which have no part that is a shard's"},
    {"int8pack", "for packed 8-bit weights, which have no part that is a shard's"},
    {"4bit_", "for packed 4-bit weights, which have no part that is a shard's"},
    {"_fp16_weight", "for packed weights, which have no part that is a shard's"},
    {"saturate_weight", "for packed weights, which have no part that is a shard's"},
    {"fused_moving_avg_obs", "for quantization-aware training; use its parts"},
    {"mkldnn", "for opaque tensors of oneDNN's; use the op without mkldnn in its name"},
    {"cudnn", "a backend's own kernel; use the op without cudnn in its name"},
    {"miopen", "a backend's own kernel; use the op without miopen in its name"},
    {"mps", "a backend's own kernel; use the op without mps in its name"},
    {"_cuda", "a backend's own kernel"},
    {"cufft", "settings of a GPU's library"},
    {"nnpack", "a backend's own kernel"},
    {"triton", "a backend's own kernel"},
    {"xla", "a backend's own op"},
    {"vulkan", "a backend's own op"},
    {"_test_", "an op of LibTorch's own tests"},
    {"_foobar", "an op of LibTorch's own tests"},
    {"_dim_arange", "an op for exporting programs"},
    {"_shape_as_tensor", "an op for exporting programs"},
    {"_make_dual", "forward-mode derivatives are not offered on a mesh"},
    {"_fw_primal", "forward-mode derivatives are not offered on a mesh"},
    {"_unpack_dual", "forward-mode derivatives are not offered on a mesh"},
    {"_jvp", "forward-mode derivatives are not offered on a mesh"},
    {"_batch_dim", "functorch's batching is not offered on a mesh"},
    {"autocast", "autocast is not offered on a mesh; name the dtype with .to()"},
    {"_lazy_clone", kStorage},
    {"set_data", kStorage},
    {"set_", kStorage},
    {"record_stream", "a mesh's work is done when a call returns"},
    {"resize", kStorage},
    {"as_strided", "strides of a storage have no meaning on a sharded tensor; use view, transpose, narrow or select"},
    {"pin_memory", "a shard's memory is the runtime's business"},
    {"is_pinned", "a shard's memory is the runtime's business"},
    {"from_file", "reads a file into one storage; read it and distribute() the tensor"},
    {"_print", "an op of compiled programs"},
    {"sym_", "an op of compiled programs"},
    {"dep_token", "an op of compiled programs"},
    {"_assert_", "an op of compiled programs; read the value with item()"},
    {"binomial", kRejects},
    {"normal.out", "use normal_, or copy the result of normal_functional"},
    {"poisson", kRejects},
    {"_gamma_grad", "the derivative of an op that is not served"},
    {"_dirichlet_grad", "the derivative of an op that is not served"},
    {"_standard_gamma", kRejects},
    {"dirichlet", kRejects},
    {"randint_like.Tensor", "the bound is read on the CPU; give its item()"},
    {"rrelu_with_noise.out", "writes two tensors of which one is named; copy the result"},
    {"rrelu_with_noise_backward.out", "copy the result"},
    {"_backward", "the derivative of an op that is served otherwise, or not at all"},
};

}  // namespace

bool touches_a_storage(std::string_view op) { return of_storage(op) != nullptr; }

std::string reason_for_none(const c10::OperatorHandle& op) {
  const auto& name = op_name(op);
  if (const auto* reason = of_storage(name)) return reason->text;
  if (name.find("::") != name.npos)
    return "give it one: World::Options::rules = built_in_rules()->with(...), as docs/rules.md shows";
  for (const auto& argument : op.schema().arguments())
    if (argument.type()->str().find("Dimname") != std::string::npos || argument.name() == "names")
      return "for dimensions with names; use the overload with numbers";
  if (std::find(std::begin(kOfSparse), std::end(kOfSparse), name) != std::end(kOfSparse)) return kSparse;
  for (const auto& [part, text] : kByName)
    if (name.find(part) != std::string::npos) return text;
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) return "LibTorch has no kernel for the CPU";
  if (is_in_place_form(op.schema()) && op.schema().arguments().size() < 4 && refused_by_hand().contains(name))
    return kStorage;
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
    return "LibTorch decomposes it into ops that may have rules; the whole has not been tried on meshes";
  return "add a row to the file of its family in runtime/planning/rules/ (docs/rules.md shows how)";
}

}  // namespace lockstep
