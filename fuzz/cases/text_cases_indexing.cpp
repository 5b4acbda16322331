// How the rows of runtime/planning/rules/indexing.cpp, losses.cpp and spectra.cpp are called.
#include "fuzz/cases/text_cases.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;

constexpr CallText kIndexing[] = {
    {"bucketize.Tensor", kExact, "x x:3"},
    {"diagonal", kMoves, "u:abc 1 0 2"},
    {"diagonal_scatter", kMoves, "u:ab3a u:b3a 0 0 3"},
    {"index.Tensor", kExact | kIntegers | kGradient, "u:abc {ka:de kb:e}"},
    {"_index_put_impl", kExact | kIntegers | kGradient, "u:abc {ka:1 kb:1} u:c"},
    {"index_put", kExact | kIntegers | kGradient, "u:abc {ka:1 kb:1} u:c"},
    {"isin.Tensor_Scalar", kExact, "x 1"},
    {"isin.Tensor_Tensor", kExact, "x x:3"},
    {"select_scatter", kMoves, "u:abc u:ac 1 0"},
    {"slice_scatter", kMoves, "u:a4c u:a2c 1 1 3"},
    {"masked_scatter", kExact, "u:a1 m:ab u:ab"},
    {"put", kExact | kIntegers | kGradient, "u:ab ka:1 u:1"},
    {"take", kMoves, "u:ab ka:cd"},
    {"unfold", kMoves, "u:a5b 1 2 2"},
    {"unfold_backward", kExact | kGradient, "x:a4b2 <a5b> 1 2 1"},
    {"_conj", kReal | kDeclared | kWide, "z"},
    {"_neg_view", kMoves, "u"},
    {"view_as_complex", kReal | kDeclared | kWide | kDense, "x:ab2"},
    {"view_as_real", kReal | kDeclared | kWide, "z"},
};

constexpr CallText kLosses[] = {
    {"binary_cross_entropy", kNumbers, "q q none 0..2"},
    {"binary_cross_entropy_backward", kNumbers, "x q q none 0..2"},
    {"huber_loss_backward", kReal, "x x x 0..2 1.0"},
    {"smooth_l1_loss_backward", kReal | kGradient, "x x x 0..2 1.0"},
    {"huber_loss", kReal | kGradient, "x x 0..2"},
    {"mse_loss", kReal | kGradient, "x x 0..2"},
    {"mse_loss_backward", kReal | kGradient, "x x x 0..2"},
    {"nll_loss_backward", kNumbers, "x: x:a5 k5:a none 1..2 -100 p:"},
    {"nll_loss_forward", kNumbers | kGradient, "x:a5 k5:a none 0..2 -100"},
    {"smooth_l1_loss", kReal | kGradient, "x x 0..2"},
};

constexpr CallText kSpectra[] = {
    {"_fft_c2c", kNumbers | kDeclared, "z:abc [1,2] 0 true"},
    {"_fft_c2r", kNumbers | kDeclared, "z:ab3 [2] 0 4"},
    {"_fft_r2c", kNumbers | kDeclared, "x:abc [1,2] 0 true"},
};

}  // namespace

std::vector<OpCase> indexing_cases() {
  std::vector<OpCase> all;
  for (const auto& text : kIndexing) all.push_back(case_of(text));
  for (const auto& text : kLosses) all.push_back(case_of(text));
  for (const auto& text : kSpectra) all.push_back(case_of(text));
  return all;
}

}  // namespace lockstep::testing
