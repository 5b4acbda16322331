#include "fuzz/trials/second_derivatives.h"

#include <map>
#include <set>
#include <string_view>

namespace lockstep::testing {

bool has_no_second_derivative(const std::string& op) {
  static const std::set<std::string_view> ops = {
      "hardsigmoid", "mesh::expert_linear",
      "scaled_dot_product_attention",  // of the kernel that LibTorch takes on a CPU
  };
  return ops.contains(op);
}

const char* refused_second_derivative(const std::string& op) {
  static const std::map<std::string_view, const char*> refusals = {
      // LibTorch's formulas add in place to what may be an unfinished sum, or views of one.
      {"_native_batch_norm_legit", "add_.Tensor writes to"},
      {"_native_batch_norm_legit.no_stats", "add_.Tensor writes to"},
      {"batch_norm", "add_.Tensor writes to"},
      {"native_batch_norm", "add_.Tensor writes to"},
      // ... or look for singular matrices.
      {"_linalg_det", "nonzero"},
      // On a mesh it is one op with one backward; `linear`, mm and bmm have second derivatives.
      {"matmul", "derivative for aten::matmul_backward is not implemented"},
  };
  const auto found = refusals.find(op);
  return found == refusals.end() ? nullptr : found->second;
}

}  // namespace lockstep::testing
