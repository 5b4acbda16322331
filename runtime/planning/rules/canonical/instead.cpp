// What to write instead of ops that canonical numerics refuses, in ops that have a form.
#include <algorithm>
#include <iterator>

#include "runtime/planning/rules/canonical/canonical_forms.h"

namespace lockstep::rules {
namespace {

struct Instead {
  std::string_view op;
  const char* text;
};

constexpr const char* kVariance = "(x - x.mean(dim, true)).square().sum(dim) / (n - 1)";
constexpr const char* kWindows = "x.unfold(2, k, step).unfold(3, k, step).mean({-1, -2})";
constexpr const char* kProduct = "x.unfold(...) and matmul";

constexpr Instead kInstead[] = {
    {"_adaptive_avg_pool2d", kWindows},
    {"avg_pool2d", kWindows},
    {"binary_cross_entropy", "-(y * x.log() + (1 - y) * (-x).log1p()).mean()"},
    {"convolution", kProduct},
    {"cosh", "(x.exp() + (-x).exp()) / 2"},
    {"exp2", "(x * log(2)).exp()"},
    {"glu", "chunk and sigmoid: a * b.sigmoid()"},
    {"huber_loss", "where((x - y).abs() < delta, 0.5 * (x - y).square(), delta * ((x - y).abs() - delta / 2)).mean()"},
    {"hypot", "(x * x + y * y).sqrt()"},
    {"index_reduce", "index_add, or scatter_add"},
    {"lerp.Tensor", "x + weight * (y - x)"},
    {"linalg_vector_norm", "(x * x).sum().sqrt()"},
    {"log10", "x.log() / log(10)"},
    {"log2", "x.log() / log(2)"},
    {"logsumexp", "amax, exp, sum and log"},
    {"mse_loss", "(x - y).square().mean()"},
    {"nll_loss_forward", "cross_entropy, or -x.gather(1, y.unsqueeze(1)).mean()"},
    {"norm.ScalarOpt_dim", "(x * x).sum(dim).sqrt()"},
    {"pow.Tensor_Tensor", "a number as exponent: 0.5, 1, 2, 3, -0.5, -1 or -2"},
    {"scatter_reduce.two", "scatter_add"},
    {"sinh", "(x.exp() - (-x).exp()) / 2"},
    {"smooth_l1_loss", "where((x - y).abs() < beta, 0.5 * (x - y).square() / beta, (x - y).abs() - beta / 2).mean()"},
    {"std.correction", kVariance},
    {"std_mean.correction", kVariance},
    {"tan", "x.sin() / x.cos()"},
    {"trace", "x.diagonal().sum()"},
    {"var.correction", kVariance},
    {"var_mean.correction", kVariance},
    {"vdot", "(x * y).sum()"},
};

constexpr bool is_before(const Instead& left, const Instead& right) { return left.op < right.op; }

}  // namespace

const char* instead_of(std::string_view op) {
  static_assert(std::is_sorted(std::begin(kInstead), std::end(kInstead), is_before));
  const auto* found = std::lower_bound(std::begin(kInstead), std::end(kInstead), Instead{op, nullptr}, is_before);
  return found != std::end(kInstead) && found->op == op ? found->text : nullptr;
}

}  // namespace lockstep::rules
