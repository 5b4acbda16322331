// How the rows of runtime/planning/rules/along.cpp are called.
#include "fuzz/cases/text_cases.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;

constexpr CallText kReductions[] = {
    {"all", kDecides, "x"},
    {"all.dim", kDecides, "x dim true"},
    {"all.dims", kDecides, "x+ dims false"},
    {"amin", kDecides | kGradient, "x+ dims false"},
    {"aminmax", kDecides, "x+"},
    {"any", kDecides, "x"},
    {"any.dim", kDecides, "x dim false"},
    {"any.dims", kDecides, "x+ dims true"},
    {"argmax", kDecides, "x+ dim false"},
    {"argmin", kDecides, "x+ dim true"},
    {"count_nonzero", kDecides, "x"},
    {"count_nonzero.dim_IntList", kDecides, "x+ dims"},
    {"linalg_vector_norm", kReal, "p+ 2 dims true"},
    {"logsumexp", kReal | kGradient, "x+ dims false"},
    {"max", kDecides | kGradient, "x+"},
    {"max.dim", kDecides | kGradient, "x+ dim false"},
    {"median", kDecides | kGradient, "x+"},
    {"min", kDecides | kGradient, "x+"},
    {"min.dim", kDecides | kGradient, "x+ dim true"},
    {"nanmedian", kDecides | kGradient, "x+"},
    {"nansum", kExact | kGradient, "x+ dims false"},
    {"norm.ScalarOpt_dim", kReal, "p+ 2 dims false"},
    {"norm.ScalarOpt_dim_dtype", kReal | kWide, "p+ 2 dims false f64"},
    {"prod", kReal | kGradient, "p"},
    {"prod.dim_int", kReal | kGradient, "p dim true"},
    {"std.correction", kReal | kWide, "x:a5b [1] 1 true"},
    {"std_mean.correction", kReal | kWide, "x:a5b [1,2] 1 false"},
    {"var.correction", kReal | kWide | kGradient, "x:a5b [1] 1 false"},
    {"var_mean.correction", kReal | kWide | kGradient, "x:a5b [0,1] 1 true"},
};

constexpr CallText kSorting[] = {
    {"cummax", kDecides | kGradient, "x+ dim"},
    {"cummin", kDecides | kGradient, "x+ dim"},
    {"cumprod", kReal | kGradient, "p dim"},
    {"cumsum", kExact | kGradient, "x dim"},
    {"flip", kMoves, "u dims"},
    {"glu_backward", kReal | kWide | kGradient, "x:a2b x:a4b 1"},
    {"glu", kReal, "x:a4b 1"},
    {"kthvalue", kDecides | kGradient, "u+ 1 dim true"},
    {"logcumsumexp", kReal | kGradient, "x+ dim"},
    {"median.dim", kDecides | kGradient, "u+ dim false"},
    {"mode", kDecides | kGradient, "x+ dim false"},
    {"nanmedian.dim", kDecides | kGradient, "u+ dim true"},
    {"roll", kMoves, "u:ab [2,-1] [0,1]"},
    {"sort", kMoves, "u dim true"},
    {"sort.stable", kDecides | kGradient, "x true dim false"},
    {"topk", kMoves, "u+ 1 dim"},
};

constexpr CallText kIndexing[] = {
    {"gather", kMoves, "u:abc dim k!:abc"},
    {"index_add", kExact | kGradient, "x:abc 1 kb:d x:adc"},
    {"index_copy", kExact | kGradient, "x:a1c 1 k1:1 x:a1c"},
    {"index_fill.int_Scalar", kMoves, "x+ dim k!:d 3"},
    {"index_fill.int_Tensor", kExact | kGradient, "x+ dim k!:d x:"},
    {"index_reduce", kExact | kGradient, "x:abc 1 kb:d x:adc 'amax'"},
    {"index_select", kMoves, "u+ dim k!:d"},
    {"scatter.reduce", kExact, "x:abc dim k!:abc x:abc 'add'"},
    {"scatter.src", kExact | kGradient, "x:a1c 1 k1:a1c x:a1c"},
    {"scatter.value", kMoves, "x:abc dim k!:abc 3"},
    {"scatter.value_reduce", kExact, "x:abc dim k!:abc 2 'add'"},
    {"scatter_add", kExact | kGradient, "x:abc dim k!:abc x:abc"},
    {"scatter_reduce.two", kExact | kGradient, "x:abc dim k!:abc x:abc 'amax'"},
};

}  // namespace

std::vector<OpCase> along_cases() {
  std::vector<OpCase> all;
  for (const auto& text : kReductions) all.push_back(case_of(text));
  for (const auto& text : kSorting) all.push_back(case_of(text));
  for (const auto& text : kIndexing) all.push_back(case_of(text));
  return all;
}

}  // namespace lockstep::testing
