// Random programs: after every step each tensor is what it is on one device. Small integers are exact in any order.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cstdlib>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/redistribute.h"
#include "tests/support/tensors.h"
#include "tests/support/trials/mutants.h"
#include "tests/support/trials/rule_trial.h"

namespace lockstep::testing {
namespace {

int draw(int low, int high) { return *rc::gen::inRange(low, high + 1); }
int64_t draw_dim(const at::Tensor& x) { return draw(0, static_cast<int>(x.dim()) - 1); }

/// One tensor of a program: on one device, and on the mesh.
struct Pair {
  at::Tensor plain, mesh;
};

int64_t compared = 0, steps = 0, refusals = 0;  ///< programs, their steps, and those that were refused

class Program {
 public:
  explicit Program(lockstep::Numerics numerics) : drawn_(Domain::kDeclared, built_in_rules(numerics), false, numerics) {
    for (int i = draw(1, 2); i > 0; --i) add_input();
  }

  void run(int count) {
    for (int i = 0; i < count; ++i) {
      step();
      compare();
    }
    steps += count, refusals += refused_;
  }

 private:
  void add_input() {
    Sizes sizes;
    for (int d = draw(0, 3); d > 0; --d) sizes.push_back(draw(1, 5));
    const auto plain = exact_tensor(sizes, draw(0, 3) == 3 ? c10::kLong : c10::kFloat, 7);
    tensors_.push_back({plain.clone(), scatter(plain, draw_layout(*drawn_.mesh, plain))});
    text_ += fmt::format("\n  t0 = {} {}", c10::str(plain.sizes()), layout_of(tensors_.back().mesh).text());
  }

  Pair& any() { return tensors_[static_cast<size_t>(draw(0, static_cast<int>(tensors_.size()) - 1))]; }

  /// What the mesh may refuse: to write what it would have to move first. Nothing is written then.
  static bool may_refuse(const std::string& text) {
    return text.find("would have to move") != std::string::npos || text.find("unfinished sum") != std::string::npos;
  }

  /// Runs `call` on the mesh, then on one device: both refuse it, or neither.
  template <class Call>
  void apply(const std::string& name, const Pair& operand, const Call& call, bool makes_tensor) {
    text_ += fmt::format("\n  {} of t{}", name, &operand - tensors_.data());
    Pair result;
    std::string refusal;
    try {
      result.mesh = call(operand.mesh, &Pair::mesh);
    } catch (const InternalError& error) {
      RC_FAIL(text_ + "\n  " + error.what());
    } catch (const std::exception& error) {
      refusal = error.what();
    }
    if (may_refuse(refusal)) return note(" (refused)");
    try {
      result.plain = call(operand.plain, &Pair::plain);
    } catch (const std::exception&) {
      if (refusal.empty()) RC_FAIL(text_ + "\n  the mesh accepts what one device refuses");
      return note(" (refused by both)");
    }
    if (!refusal.empty()) RC_FAIL(text_ + "\n  refused: " + refusal);
    if (makes_tensor) tensors_.push_back(result);
  }

  void note(const char* text) {
    text_ += text;
    ++refused_;
  }

  void view() {
    const auto& x = any();
    if (x.plain.dim() == 0) return;
    const auto dim = draw_dim(x.plain), other = draw_dim(x.plain);
    const auto index = draw(0, static_cast<int>(x.plain.size(dim)) - 1);
    const auto length = draw(1, static_cast<int>(x.plain.size(dim)) - index);
    switch (draw(0, 7)) {
      case 7:
        return flatten(x);
      case 0:
        return apply(
            "select", x, [=](const at::Tensor& t, auto) { return t.select(dim, index); }, true);
      case 1:
        return apply(
            "narrow", x, [=](const at::Tensor& t, auto) { return t.narrow(dim, index, length); }, true);
      case 2:
        return apply(
            "transpose", x, [=](const at::Tensor& t, auto) { return t.transpose(dim, other); }, true);
      case 3:
        return apply(
            "unsqueeze", x, [=](const at::Tensor& t, auto) { return t.unsqueeze(dim); }, true);
      case 4:
        return apply(
            "view", x, [](const at::Tensor& t, auto) { return t.view({-1}); }, true);
      case 5:
        return apply(
            "split", x, [=](const at::Tensor& t, auto) { return t.split(length, dim).back(); }, true);
      default:
        return apply(
            "detach", x, [](const at::Tensor& t, auto) { return t.detach(); }, true);
    }
  }

  /// Its elements as they lie in memory, if one device has no gaps between them.
  void flatten(const Pair& x) {
    apply(
        "flatten", x, [](const at::Tensor& t, auto) { return flat_as_it_lies(t); }, true);
  }

  void write() {
    const auto& x = any();
    const auto& y = any();
    switch (draw(0, 5)) {
      case 5:
        return add_from(x, y);
      case 0:
        return apply(
            "fill_", x, [](const at::Tensor& t, auto) { return t.fill_(3); }, false);
      case 1:
        return apply(
            "mul_", x, [](const at::Tensor& t, auto) { return t.mul_(-1); }, false);
      case 2:
        return apply(
            "add_", x, [](const at::Tensor& t, auto) { return t.add_(1); }, false);
      default:
        return write_from(x, y);
    }
  }

  void write_from(const Pair& x, const Pair& y) {
    if (x.plain.is_alias_of(y.plain)) return;  // LibTorch's own result depends on how they overlap
    const auto name = fmt::format("copy_ of t{} into that", &y - tensors_.data());
    apply(
        name, x, [&](const at::Tensor& t, auto side) { return t.copy_(y.*side); }, false);
  }

  void add_from(const Pair& x, const Pair& y) {
    if (x.plain.is_alias_of(y.plain)) return;
    apply(
        fmt::format("add_ t{} to that", &y - tensors_.data()), x,
        [&](const at::Tensor& t, auto side) { return t.add_(y.*side); }, false);
  }

  /// Of one dimension: its length follows from floating-point arguments.
  void make() {
    const double end = 0.5 * draw(1, 12);
    text_ += fmt::format("\n  t{} = arange({})", tensors_.size(), end);
    const MeshScope scope(*drawn_.mesh);
    const auto options = at::TensorOptions().device(c10::kPrivateUse1).dtype(c10::kFloat);
    tensors_.push_back({at::arange(end, c10::kFloat), at::arange(end, options)});
  }

  /// A number of any kind: the result's dtype depends on whether it is a tensor's or a program's.
  void compute_with_number() {
    const auto& x = any();
    const bool is_whole = draw(0, 1) == 1, is_wrapped = draw(0, 1) == 1;
    const auto number = is_whole ? at::scalar_tensor(draw(-2, 2), c10::kLong) : at::scalar_tensor(0.5, c10::kDouble);
    number.unsafeGetTensorImpl()->set_wrapped_number(is_wrapped);
    apply(
        fmt::format("mul by {} {}", is_wrapped ? "a number" : "a tensor", number.item<double>()), x,
        [=](const at::Tensor& t, auto) { return t * number; }, true);
  }

  /// Of two tensors that fit, broadcast, or do not fit.
  void combine() {
    const auto& x = any();
    const auto& y = any();
    const auto kind = draw(0, 2);
    apply(
        fmt::format("{} with t{}", std::array{"add", "mul", "maximum"}[static_cast<size_t>(kind)],
                    &y - tensors_.data()),
        x,
        [=, &y](const at::Tensor& t, auto side) {
          const auto& other = y.*side;
          return kind == 0 ? t + other : kind == 1 ? t * other : at::maximum(t, other);
        },
        true);
  }

  void compute() {
    const auto& x = any();
    const auto dim = x.plain.dim() > 0 ? draw_dim(x.plain) : 0;
    switch (draw(0, 9)) {
      case 8:
      case 9:
        return apply(
            "flat 2 - turned x", x,
            [=](const at::Tensor& t, auto) { return flat_as_it_lies(2 - t.transpose(dim, -1)); }, true);
      case 5:
        return make();
      case 6:
        return compute_with_number();
      case 7:
        return combine();
      case 0:
        return apply(
            "clone", x, [](const at::Tensor& t, auto) { return t.clone(); }, true);
      case 1:
        return apply(
            "add", x, [](const at::Tensor& t, auto) { return t + 1; }, true);
      case 2:
        return apply(
            "neg", x, [](const at::Tensor& t, auto) { return -t; }, true);
      case 3:
        return apply(
            "2 - x", x, [](const at::Tensor& t, auto) { return 2 - t; }, true);
      default:
        return apply(
            "amax", x, [=](const at::Tensor& t, auto) { return t.amax({dim}); }, true);
    }
  }

  void redistribute() {
    const auto& x = any();
    const auto layout = draw_layout(*drawn_.mesh, x.plain);
    text_ += fmt::format("\n  redistribute t{} to {}", &x - tensors_.data(), layout.text());
    const Pair copy{x.plain.clone(at::MemoryFormat::Contiguous), lockstep::redistribute(x.mesh, layout)};
    tensors_.push_back(copy);
  }

  void step() {
    if (tensors_.size() > 8) return write();
    switch (draw(0, 4)) {
      case 0:
        return compute();
      case 1:
        return redistribute();
      case 2:
        return write();
      default:
        return view();
    }
  }

  void compare() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const auto what = difference(tensors_[i].mesh, tensors_[i].plain, {}, true);
      if (!what.empty()) RC_FAIL(fmt::format("on {}:{}\n  t{}: {}", drawn_.mesh->text(), text_, i, what));
    }
  }

  DrawnMesh drawn_;
  std::vector<Pair> tensors_;
  std::string text_;
  int64_t refused_ = 0;
};

void any_program_gives_one_devices_values(lockstep::Numerics numerics) {
  const at::NoGradGuard no_grad;
  try {
    Program(numerics).run(draw(1, 12));
  } catch (const BadInput& error) {
    RC_FAIL(std::string("refused: ") + error.what());
  }
  ++compared;
}

int program_count() {
  const char* soak = std::getenv("LOCKSTEP_SOAK_PROGRAMS");
  return soak ? std::atoi(soak) : 8000;
}

void expect_one_devices_values(lockstep::Numerics numerics) {
  compared = steps = refusals = 0;
  const auto failure = failure_of(fmt::format("{} programs", to_text(numerics)), program_count(),
                                  [=] { any_program_gives_one_devices_values(numerics); });
  if (!failure.empty()) FAIL() << failure;
  EXPECT_GE(compared, program_count());
  EXPECT_LT(refusals, steps / 4) << "most of what is drawn should run";
  ::testing::Test::RecordProperty("programs", std::to_string(compared));
}

TEST(Programs, GiveOneDevicesValues) { expect_one_devices_values(lockstep::Numerics::kNative); }
TEST(Programs, GiveOneDevicesValuesUnderCanonicalNumerics) {
  expect_one_devices_values(lockstep::Numerics::kCanonical);
}

}  // namespace
}  // namespace lockstep::testing
