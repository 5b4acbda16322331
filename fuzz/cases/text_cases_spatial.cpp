// How the rows of runtime/planning/rules/matrices.cpp and windows.cpp are called.
#include "fuzz/cases/text_cases.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;

constexpr CallText kMatrices[] = {
    {"_linalg_det", kNumbers | kDense | kGradient, "x:...22"},
    {"_linalg_eigh", kNumbers | OpCase::kNoValues, "x:...22"},
    {"_linalg_eigvals", kNumbers | kDeclared, "p:...22"},
    {"_linalg_slogdet", kNumbers | kDense | kGradient, "x:...22"},
    {"_linalg_solve_ex", kNumbers | kGradient, "x:...22 x:...23"},
    {"_linalg_svd", kNumbers | OpCase::kNoValues | kGradient, "x:...32"},
    {"addbmm", kExact | kGradient, "x:mn x:bmk x:bkn"},
    {"addmv", kExact | kGradient, "x:m x:mk x:k"},
    {"baddbmm", kExact | kGradient, "x:bmn x:bmk x:bkn"},
    {"dot", kExact | kGradient, "x:k x:k"},
    {"linalg_cross", kExact | kGradient, "x:a3b x:a3b 1"},
    {"linalg_cholesky_ex", kNumbers | kGradient, "x:...22"},
    {"linalg_eig", kNumbers | kNoValues | kDeclared, "x:...22"},
    {"linalg_inv_ex", kNumbers | kGradient, "x:...22"},
    {"linalg_ldl_factor_ex", kNumbers, "x:...22"},
    {"linalg_lu_factor_ex", kNumbers | kGradient, "x:...23"},
    {"linalg_lu", kNumbers | kGradient, "x:...32"},
    {"linalg_ldl_solve", kNumbers, "p:...22 v:...2 x:...23"},
    {"linalg_lu_solve", kNumbers | kGradient, "p:...22 v:...2 x:...23"},
    {"linalg_matrix_exp", kNumbers | kDense | kGradient, "x:...22"},
    {"linalg_qr", kNumbers | kGradient, "x:...32"},
    {"mv", kExact | kGradient, "x:mk x:k"},
    {"trace", kExact | kWide | kGradient, "x:ab"},
    {"tril", kExact | kIntegers | kGradient, "x:...ab 1"},
    {"triu", kExact | kIntegers | kGradient, "x:...ab -1"},
    {"triangular_solve", kNumbers | kGradient, "x:...23 p:...22"},
    {"vdot", kExact | kGradient, "x:k x:k"},
};

constexpr CallText kWindows[] = {
    {"_adaptive_avg_pool2d", kReal | kGradient, "x:ab45 [2,3]"},
    {"_adaptive_avg_pool2d_backward", kReal | kGradient, "x:ab23 x:ab45"},
    {"_adaptive_avg_pool3d", kReal | kGradient, "x:a2345 [2,2,2]"},
    {"_adaptive_avg_pool3d_backward", kReal | kGradient, "x:a2222 x:a2345"},
    {"_upsample_bicubic2d_aa", kNumbers | kGradient, "x:ab45 [3,3] true"},
    {"_upsample_bilinear2d_aa", kNumbers | kGradient, "x:ab45 [3,3] true"},
    {"_upsample_nearest_exact1d", kExact | kGradient, "x:ab4 [6]"},
    {"_upsample_nearest_exact2d", kExact | kGradient, "x:ab45 [6,3]"},
    {"_upsample_nearest_exact3d", kExact | kGradient, "x:a2345 [4,3,6]"},
    {"adaptive_max_pool2d", kExact | kGradient, "u:ab45 [2,3]"},
    {"adaptive_max_pool3d", kExact | kGradient, "u:a2345 [2,2,2]"},
    {"avg_pool2d", kReal | kGradient, "x:ab45 [2,2]"},
    {"avg_pool3d", kNumbers | kGradient, "x:a2345 [2,2,2]"},
    {"constant_pad_nd", kExact | kIntegers | kGradient, "u:abc [1,2,-1,1] 3"},
    {"max_pool2d_with_indices", kExact | kGradient, "u:ab45 [2,2] [1,2] [1,1]"},
    {"reflection_pad1d", kExact | kGradient, "u:ab4 [1,2]"},
    {"reflection_pad3d", kExact | kGradient, "u:ab445 [1,2,1,1,2,0]"},
    {"replication_pad1d", kExact | kGradient, "u:ab4 [1,2]"},
    {"replication_pad2d", kExact | kGradient, "u:ab45 [1,2,0,3]"},
    {"replication_pad3d", kExact | kGradient, "u:ab445 [1,2,1,1,2,0]"},
    {"upsample_bicubic2d", kNumbers | kGradient, "x:ab45 [6,3] false"},
    {"upsample_bilinear2d", kNumbers | kGradient, "x:ab45 [6,3] true"},
    {"upsample_linear1d", kNumbers | kGradient, "x:ab4 [6] false"},
    {"upsample_nearest1d", kExact | kGradient, "x:ab4 [6]"},
    {"upsample_nearest2d", kExact | kGradient, "x:ab45 [6,3]"},
    {"upsample_nearest3d", kExact | kGradient, "x:a2345 [4,3,6]"},
    {"upsample_trilinear3d", kNumbers | kGradient, "x:a2345 [4,3,6] true"},
};

constexpr CallText kDerivatives[] = {
    {"convolution", kNumbers | kGradient, "x:nc45 x:oc23 x:o [1,2] [1,0] [1,1] false [0,0] 1"},
    {"convolution_backward", kNumbers | kGradient, "x:no54 x:nc45 x:oc22 <o> [1,1] [1,0] [1,1] false [0,0] 1 [t,t,t]"},
    {"_upsample_bicubic2d_aa_backward", kNumbers | kGradient, "x:ab33 [3,3] <ab45> true"},
    {"_upsample_bilinear2d_aa_backward", kNumbers | kGradient, "x:ab33 [3,3] <ab45> true"},
    {"_upsample_nearest_exact1d_backward", kExact | kGradient, "x:ab6 [6] <ab4>"},
    {"_upsample_nearest_exact2d_backward", kExact | kGradient, "x:ab63 [6,3] <ab45>"},
    {"_upsample_nearest_exact3d_backward", kExact | kGradient, "x:a2436 [4,3,6] <a2345>"},
    {"adaptive_max_pool2d_backward", kExact | kGradient, "x:ab22 x:ab45 k4:ab22"},
    {"adaptive_max_pool3d_backward", kExact | kGradient, "x:a2222 x:a2345 k4:a2222"},
    {"avg_pool2d_backward", kReal | kGradient, "x:ab22 x:ab45 [2,2] [2,2] [0,0] false true none"},
    {"avg_pool3d_backward", kNumbers | kGradient, "x:a2122 x:a2345 [2,2,2] [2,2,2] [0,0,0] false true none"},
    {"max_pool2d_with_indices_backward", kExact | kGradient, "x:ab22 x:ab45 [2,2] [2,2] [0,0] [1,1] false k9:ab22"},
    {"reflection_pad1d_backward", kExact | kGradient, "x:ab7 x:ab4 [1,2]"},
    {"reflection_pad2d_backward", kExact | kGradient, "x:ab57 x:ab45 [1,1,0,1]"},
    {"reflection_pad3d_backward", kExact | kGradient, "x:ab578 x:ab445 [1,2,1,2,1,0]"},
    {"replication_pad1d_backward", kExact | kGradient, "x:ab7 x:ab4 [1,2]"},
    {"replication_pad2d_backward", kExact | kGradient, "x:ab57 x:ab45 [1,1,0,1]"},
    {"replication_pad3d_backward", kExact | kGradient, "x:ab578 x:ab445 [1,2,1,2,1,0]"},
    {"upsample_bicubic2d_backward", kNumbers | kGradient, "x:ab63 [6,3] <ab45> false"},
    {"upsample_bilinear2d_backward", kNumbers | kGradient, "x:ab63 [6,3] <ab45> true"},
    {"upsample_linear1d_backward", kNumbers | kGradient, "x:ab6 [6] <ab4> false"},
    {"upsample_nearest1d_backward", kExact | kGradient, "x:ab6 [6] <ab4>"},
    {"upsample_nearest2d_backward", kExact | kGradient, "x:ab63 [6,3] <ab45>"},
    {"upsample_nearest3d_backward", kExact | kGradient, "x:a2436 [4,3,6] <a2345>"},
    {"upsample_trilinear3d_backward", kNumbers | kGradient, "x:a2436 [4,3,6] <a2345> true"},
};

}  // namespace

std::vector<OpCase> spatial_cases() {
  std::vector<OpCase> all;
  for (const auto& text : kMatrices) all.push_back(case_of(text));
  for (const auto& text : kWindows) all.push_back(case_of(text));
  for (const auto& text : kDerivatives) all.push_back(case_of(text));
  return all;
}

}  // namespace lockstep::testing
