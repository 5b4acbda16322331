// A program draws what it does next from what it has.
#include "fuzz/trials/random_program.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <rapidcheck.h>

#include <array>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/program_tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/redistribute.h"

namespace lockstep::testing {
namespace {

class Program : private ProgramTensors {
 public:
  using ProgramTensors::ProgramTensors;

  void run(int count) {
    for (int i = 0; i < count; ++i) {
      step();
      compare();
    }
    program_counts().steps += count, program_counts().refusals += refused_;
  }

 private:
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

  /// Integer, real, bool or complex: a result's dtype follows from the kind.
  static at::Scalar draw_number() {
    return std::array<at::Scalar, 4>{2, 2.5, true, c10::complex<double>(1, -2)}[draw_index(4)];
  }

  void fill_new() {
    const auto number = draw_number();
    text_ += fmt::format("\n  t{} = full of {}", tensors_.size(), c10::toString(number.type()));
    const MeshScope scope(*drawn_.mesh);
    tensors_.push_back({at::full({3}, number), at::full({3}, number, at::device(c10::kPrivateUse1))});
  }

  /// Of one dimension: its length follows from floating-point arguments.
  void make() {
    const double end = 0.5 * draw(1, 12);
    text_ += fmt::format("\n  t{} = arange({})", tensors_.size(), end);
    const MeshScope scope(*drawn_.mesh);
    const auto options = at::TensorOptions().device(c10::kPrivateUse1).dtype(c10::kFloat);
    tensors_.push_back({at::arange(end, c10::kFloat), at::arange(end, options)});
  }

  void subtract_from_number() {
    const auto number = draw_number();
    apply(
        fmt::format("rsub from {}", c10::toString(number.type())), any(),
        [=](const at::Tensor& t, auto) { return at::rsub(t, number); }, true);
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
    switch (draw(0, 11)) {
      case 10:
        return fill_new();
      case 11:
        return subtract_from_number();
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

  /// What has no order is refused where its maximum is asked for, not where it is read.
  void redistribute_to_maximum(const Pair& x) {
    auto placements = Layout::replicated(*drawn_.mesh).placements();
    placements[0] = Placement::partial(Reduction::kMax);
    const Layout layout(*drawn_.mesh, std::move(placements));
    text_ += fmt::format("\n  redistribute t{} to {}", &x - tensors_.data(), layout.text());
    try {
      lockstep::redistribute(x.mesh, layout);
    } catch (const BadInput&) {
      return note(" (refused)");
    }
    RC_FAIL(text_ + "\n  the mesh accepts a maximum of " + c10::toString(x.plain.scalar_type()));
  }

  void redistribute() {
    const auto& x = any();
    if (x.plain.is_complex() && draw(0, 3) == 3) return redistribute_to_maximum(x);
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
};

}  // namespace

ProgramCounts& program_counts() {
  static ProgramCounts counts;
  return counts;
}

void a_program_gives_one_devices_values(lockstep::Numerics numerics) {
  const at::NoGradGuard no_grad;
  try {
    Program(numerics).run(draw(1, 12));
  } catch (const BadInput& error) {
    RC_FAIL(std::string("refused: ") + error.what());
  }
  ++program_counts().programs;
}

}  // namespace lockstep::testing
