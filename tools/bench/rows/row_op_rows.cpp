// Elementwise and row ops as the mesh runs them under canonical numerics.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "runtime/context/world.h"
#include "runtime/dispatch/backend.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tools/bench/rows/numerics_rows.h"

namespace lockstep::bench {
namespace {

using at::Tensor;

/// A canonical mesh of one rank, and tensors in pairs: on it and plain.
struct Place {
  World world{{.rank_count = 1, .numerics = Numerics::kCanonical}};
  const Mesh& mesh = world.mesh({{"tp", 1}});

  Tensor operator()(const Tensor& plain) const { return distribute(plain, Layout::replicated(mesh)); }
};

/// Sequences of a step of the debugmodel.
struct Batch {
  int64_t sequences, length;
  int64_t tokens() const { return sequences * length; }
};
constexpr int64_t kWidth = 256, kHidden = 768, kVocabulary = 2048, kHeads = 16, kHeadSize = 16;

class Cases {
 public:
  explicit Cases(const Batch& batch) : batch_(batch) {}

  std::vector<NumericsCase> cases() {
    add_norms();
    add_gates();
    add_elementwise();
    add_softmax();
    add_cross_entropy();
    add_rotation();
    add_table();
    add_sums();
    return std::move(all_);
  }

 private:
  Tensor random(int64_t width) const { return at::randn({batch_.sequences, batch_.length, width}); }

  /// `body` makes operands with what it is given and calls time(ours, peer).
  template <class Body>
  void add(const char* op, int64_t width, const Body& body) {
    const auto name = fmt::format("{}_{}x{}", op, batch_.tokens(), width);
    all_.push_back({name, [name, body, batch = batch_](PairedOptions options) {
                      at::set_num_threads(1);
                      options.own_time = true;
                      register_backend();
                      const at::NoGradGuard no_gradients;
                      const auto timing = body(Cases(batch), Place(), [&](auto&& ours, auto&& peer) {
                        return time_in_pairs(ours, peer, options);
                      });
                      return make_row(name, timing, "libtorch", "ms", 1e3);
                    }});
  }

  /// op(x) on both sides.
  template <class Op>
  void add_unary(const char* name, int64_t width, const Op& op) {
    add(name, width, [=](const Cases& c, const Place& place, const auto& time) {
      const auto x = c.random(width), placed = place(x);
      return time([&] { op(placed); }, [&] { op(x); });
    });
  }
  /// op(gradient, x) on both sides.
  template <class Op>
  void add_binary(const char* name, int64_t width, const Op& op) {
    add(name, width, [=](const Cases& c, const Place& place, const auto& time) {
      const auto g = c.random(width), x = c.random(width), placed_g = place(g), placed_x = place(x);
      return time([&] { op(placed_g, placed_x); }, [&] { op(g, x); });
    });
  }

  void add_norms() {
    add("rms_norm", kWidth, [](const Cases& c, const Place& place, const auto& time) {
      const auto x = c.random(kWidth), w = at::randn({kWidth}), placed_x = place(x), placed_w = place(w);
      return time([&] { mesh_ops::rms_norm(placed_x, placed_w, 1e-5); }, [&] { at::rms_norm(x, {kWidth}, w, 1e-5); });
    });
    // LibTorch composes this gradient: both sides by autograd.
    add("rms_norm_backward", kWidth, [](const Cases& c, const Place& place, const auto& time) {
      const auto g = c.random(kWidth), x = c.random(kWidth), w = at::randn({kWidth});
      const auto ours = norm_gradient(place(g), place(x), place(w)), peer = norm_gradient(g, x, w);
      return time(ours, peer);
    });
  }

  static std::function<void()> norm_gradient(const Tensor& g, const Tensor& x, const Tensor& w) {
    const at::AutoGradMode with_gradients(true);
    x.requires_grad_(), w.requires_grad_();
    const auto y = at::rms_norm(x, {kWidth}, w, 1e-5);
    return [=] { torch::autograd::grad({y}, {x, w}, {g}, /*retain_graph=*/true); };
  }

  void add_gates() {
    const auto halves = [](const Tensor& both) { return both.chunk(2, -1); };
    add("swiglu", kHidden, [=](const Cases& c, const Place& place, const auto& time) {
      const auto both = c.random(2 * kHidden), placed = place(both.unflatten(-1, {2, kHidden}));
      return time([&] { mesh_ops::swiglu(placed); },
                  [&] {
                    const auto half = halves(both);
                    at::mul(at::silu(half[0]), half[1]);
                  });
    });
    // As autograd runs it: what silu gave is at hand.
    add("swiglu_backward", kHidden, [=](const Cases& c, const Place& place, const auto& time) {
      const auto both = c.random(2 * kHidden), g = c.random(kHidden);
      const auto placed = place(both.unflatten(-1, {2, kHidden})), placed_g = place(g);
      const auto half = halves(both);
      const auto gated = at::silu(half[0]);
      return time([&] { mesh_ops::swiglu_backward(placed_g, placed); },
                  [&] {
                    at::cat({at::silu_backward(at::mul(g, half[1]), half[0]), at::mul(g, gated)}, -1);
                  });
    });
  }

  void add_elementwise() {
    add_unary("sigmoid", kHidden, [](const Tensor& x) { at::sigmoid(x); });
    add_unary("silu", kHidden, [](const Tensor& x) { at::silu(x); });
    add_binary("silu_backward", kHidden, [](const Tensor& g, const Tensor& x) { at::silu_backward(g, x); });
    add_unary("gelu", kHidden, [](const Tensor& x) { at::gelu(x); });
    add_binary("gelu_backward", kHidden, [](const Tensor& g, const Tensor& x) { at::gelu_backward(g, x); });
    add_binary("add", kHidden, [](const Tensor& a, const Tensor& b) { at::add(a, b); });
    add_binary("mul", kHidden, [](const Tensor& a, const Tensor& b) { at::mul(a, b); });
  }

  void add_softmax() {
    add_unary("softmax", kVocabulary, [](const Tensor& x) { at::_softmax(x, -1, false); });
    add_unary("log_softmax", kVocabulary, [](const Tensor& x) { at::_log_softmax(x, -1, false); });
    add_binary("softmax_backward", kVocabulary,
               [](const Tensor& g, const Tensor& y) { at::_softmax_backward_data(g, y, -1, at::kFloat); });
    add_binary("log_softmax_backward", kVocabulary,
               [](const Tensor& g, const Tensor& y) { at::_log_softmax_backward_data(g, y, -1, at::kFloat); });
  }

  void add_cross_entropy() {
    add("cross_entropy", kVocabulary, [](const Cases& c, const Place& place, const auto& time) {
      const auto logits = c.random(kVocabulary).flatten(0, 1), targets = c.targets().flatten();
      const auto placed = place(logits), placed_targets = place(targets);
      return time([&] { at::cross_entropy_loss(placed, placed_targets); },
                  [&] { at::cross_entropy_loss(logits, targets); });
    });
    add("cross_entropy_backward", kVocabulary, [](const Cases& c, const Place& place, const auto& time) {
      const auto logits = c.random(kVocabulary).flatten(0, 1), targets = c.targets().flatten();
      const auto g = at::full({c.batch_.tokens()}, 0.5), log_sum = at::logsumexp(logits, {-1});
      const auto placed = place(logits), placed_targets = place(targets), placed_g = place(g), shift = place(log_sum);
      const auto y = at::log_softmax(logits, -1), one = at::ones({}), weight = at::full({}, double(c.batch_.tokens()));
      return time([&] { mesh_ops::cross_entropy_backward(placed_g, placed, shift, placed_targets); },
                  [&] {
                    const auto picked = at::nll_loss_backward(one, y, targets, {}, 1, -100, weight);
                    at::_log_softmax_backward_data(picked, y, -1, at::kFloat);
                  });
    });
  }

  void add_rotation() {
    add("rotate_pairs", kWidth, [](const Cases& c, const Place& place, const auto& time) {
      const auto x = at::randn({c.batch_.sequences, c.batch_.length, kHeads, kHeadSize}),
                 angles = at::randn({c.batch_.length, kHeadSize / 2});
      const auto table = at::polar(at::ones_like(angles), angles).unsqueeze(1);
      const auto placed = place(x).transpose(1, 2), cosines = place(at::cos(angles)), sines = place(at::sin(angles));
      return time([&] { mesh_ops::rotate_pairs(placed, cosines, sines); },
                  [&] {
                    const auto pairs = at::view_as_complex(x.unflatten(-1, {kHeadSize / 2, 2}));
                    at::view_as_real(pairs * table).flatten(3);
                  });
    });
  }

  void add_table() {
    add("embedding_backward", kWidth, [](const Cases& c, const Place& place, const auto& time) {
      const auto g = c.random(kWidth), tokens = c.targets(), placed_g = place(g), placed_tokens = place(tokens);
      return time([&] { at::embedding_dense_backward(placed_g, placed_tokens, kVocabulary, -1, false); },
                  [&] { at::embedding_dense_backward(g, tokens, kVocabulary, -1, false); });
    });
  }

  void add_sums() {
    add_unary("sum_rows", kVocabulary, [](const Tensor& x) { at::sum(x, {-1}, false); });
    add_unary("sum_columns", kVocabulary, [](const Tensor& x) { at::sum(x, {1}, false); });
  }

  Tensor targets() const { return at::randint(kVocabulary, {batch_.sequences, batch_.length}, at::kLong); }

  Batch batch_;
  std::vector<NumericsCase> all_;
};

/// What a step does once per parameter, here gate and up of a layer.
template <class Body>
NumericsCase parameter_case(const char* name, const Body& body) {
  return {name, [=](PairedOptions options) {
            at::set_num_threads(1);
            options.own_time = true;
            register_backend();
            const at::NoGradGuard no_gradients;
            const Place place;
            const auto make = [] { return at::randn({2 * kHidden, kWidth}) * 0.01; };
            const auto timing =
                body(place, make, [&](auto&& ours, auto&& peer) { return time_in_pairs(ours, peer, options); });
            return make_row(name, timing, "libtorch", "ms", 1e3);
          }};
}

NumericsCase adamw_case() {
  return parameter_case("adamw_1536x256", [](const Place& place, const auto& make, const auto& time) {
    const auto p = make(), g = make(), m = make(), v = at::square(make()), step = at::ones({});
    const auto our_p = place(p.clone()), our_g = place(g), our_m = place(m.clone()), our_v = place(v.clone());
    const mesh_ops::AdamwOptions options{1e-3, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05};
    return time([&] { mesh_ops::adamw(our_p, our_g, our_m, our_v, options); },
                [&] { at::_fused_adamw_({p}, {g}, {m}, {v}, {}, {step}, 1e-3, 0.9, 0.95, 0.1, 1e-8, false, false); });
  });
}

NumericsCase gradient_norm_case() {
  return parameter_case("gradient_norm_1536x256", [](const Place& place, const auto& make, const auto& time) {
    const auto g = make(), placed = place(g);
    return time(
        [&] {
          mesh_ops::absolute_maximum(placed);
          mesh_ops::scaled_squares(placed, 0x1p20);
        },
        [&] { at::linalg_vector_norm(g); });
  });
}

}  // namespace

std::vector<NumericsCase> row_op_cases() {
  std::vector<NumericsCase> all;
  for (const Batch& batch : {Batch{2, 256}, Batch{8, 512}})
    for (auto& one : Cases(batch).cases()) all.push_back(std::move(one));
  all.push_back(adamw_case());
  all.push_back(gradient_norm_case());
  return all;
}

}  // namespace lockstep::bench
