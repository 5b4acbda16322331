// Drawing programs, and their text.
#include "fuzz/programs/program_text.h"

#include <ATen/Functions.h>
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <array>
#include <optional>

#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/programs/program_run.h"

namespace lockstep::fuzz {
namespace {

using namespace testing;

constexpr std::array kNames = {"add",     "subtract",  "multiply",     "matmul", "tanh",      "sin",
                               "sigmoid", "softmax",   "sum",          "mean",   "transpose", "select",
                               "narrow",  "unsqueeze", "flatten",      "expand", "cat",       "write",
                               "dropout", "region",    "redistribute", "relu",   "maximum"};
static_assert(kNames.size() == static_cast<size_t>(Step::kRepeat));

/// Larger values would make rounding errors that no bound tells from mistakes.
constexpr double kLargest = 64;
constexpr int64_t kMostElements = 600;

int64_t number(int64_t low, int64_t high) { return drawn(*rc::gen::inRange<int64_t>(low, high + 1)); }

size_t one_of(size_t count) { return static_cast<size_t>(number(0, static_cast<int64_t>(count) - 1)); }

/// Averages of equal values may round: they are no canonical operands.
std::string draw_layout_text(const Mesh& mesh, const at::Tensor& tensor) {
  auto placements = draw_layout(mesh, tensor).placements();
  for (auto& placement : placements)
    if (placement.is_partial()) placement.reduction = Reduction::kSum;
  return Layout(mesh, std::move(placements)).text();
}

class Drawing {
 public:
  explicit Drawing(bool canonical)
      : inputs_(canonical ? *rc::gen::element(c10::kFloat, c10::kDouble) : c10::kFloat, false) {
    program_.canonical = canonical;
    program_.axes = *mesh_axes(4, 16);
    program_.seed = static_cast<uint64_t>(number(0, 1 << 20));
    world_ = simulated_world(program_.axes);
    mesh_ = &world_->mesh(program_.axes);
    if (canonical)
      program_.delivery = *rc::gen::weightedElement<Delivery>(
          {{3, Delivery::kDirect}, {1, Delivery::kMessages}, {1, Delivery::kTwoGroups}});
    draw_leaves();
  }

  Program draw() {
    auto leaves = program_.parameters;
    leaves.insert(leaves.end(), program_.inputs[0].begin(), program_.inputs[0].end());
    ProgramRun shapes(leaves, nullptr);
    const at::NoGradGuard no_grad;
    for (auto left = number(2, 40); left > 0; --left) add_instruction(shapes);
    return std::move(program_);
  }

 private:
  void draw_leaves() {
    program_.parameters.push_back(inputs_.tensor({}));
    for (auto left = number(1, 2); left > 0; --left) program_.parameters.push_back(leaf());
    const auto input = leaf();
    program_.inputs.resize(static_cast<size_t>(number(1, 3)));
    for (auto& microbatch : program_.inputs) microbatch = {inputs_.tensor(input.sizes().vec())};
    for (const auto& parameter : program_.parameters) program_.layouts.push_back(draw_layout_text(*mesh_, parameter));
    program_.layouts.push_back(draw_layout_text(*mesh_, input));
  }

  /// Few different sizes, so that many operands fit each other.
  at::Tensor leaf() {
    Sizes sizes(static_cast<size_t>(number(1, 3)));
    for (auto& size : sizes) size = *rc::gen::element<int64_t>(4, 3, 4, 1, 6);
    return inputs_.tensor(sizes);
  }

  Instruction draw_instruction(const std::vector<at::Tensor>& values) {
    Instruction one;
    const auto last = program_.canonical ? Step::kMaximum : Step::kRedistribute;
    one.step = static_cast<Step>(number(0, static_cast<int64_t>(last)));
    // What came last is read most.
    const auto recent = std::min<size_t>(values.size(), 4);
    one.a = number(0, 1) == 0 ? values.size() - 1 - one_of(recent) : one_of(values.size());
    one.b = one_of(values.size());
    const auto& a = values[one.a];
    one.dim = a.dim() > 0 ? number(0, a.dim() - 1) : 0;
    one.index = a.dim() > 0 && a.size(one.dim) > 0 ? number(0, a.size(one.dim) - 1) : 0;
    if (one.step == Step::kRedistribute) one.layout = draw_layout_text(*mesh_, a);
    if (one.step == Step::kWrite) one.layout = layout(*mesh_, static_cast<int>(a.dim()), /*partial=*/false).text();
    return one;
  }

  /// What one device refuses is not part of the program; of that other checks are made.
  void add_instruction(ProgramRun& shapes) {
    const auto count = shapes.values().size();
    const auto one = draw_instruction(shapes.values());
    if (shapes.values()[one.a].dim() == 0 && one.step == Step::kWrite) return;
    try {
      shapes.run(one, 0);
    } catch (const std::exception&) {
      return shapes.forget(count);
    }
    for (size_t i = count; i < shapes.values().size(); ++i) {
      const auto& value = shapes.values()[i];
      const bool is_small = value.numel() == 0 || value.abs().max().item<double>() <= kLargest;
      if (!is_small || value.numel() > kMostElements || value.dim() > 5) return shapes.forget(count);
    }
    program_.instructions.push_back(one);
  }

  Inputs inputs_;
  Program program_;
  std::unique_ptr<World> world_;
  const Mesh* mesh_ = nullptr;
};

}  // namespace

bool Program::draws() const {
  return std::any_of(instructions.begin(), instructions.end(), [](const Instruction& one) {
    return one.step == Step::kDropout || one.step == Step::kCheckpoint;
  });
}

int Program::ranks() const { return static_cast<int>(rank_count(axes)); }

Program draw_program(bool canonical) { return Drawing(canonical).draw(); }

std::string to_text(const Program& program) {
  auto text = fmt::format("{} program on {}, {} microbatches{}", program.canonical ? "canonical" : "native",
                          to_text(program.axes), program.inputs.size(),
                          program.delivery == Delivery::kDirect     ? ""
                          : program.delivery == Delivery::kMessages ? ", messages"
                                                                    : ", two groups");
  size_t value = 0;
  for (size_t p = 0; p < program.layouts.size(); ++p) {
    const bool is_input = p == program.parameters.size();
    const auto& leaf = is_input ? program.inputs[0][0] : program.parameters[p];
    text += fmt::format("\nv{} = {} {} {}", value++, is_input ? "input" : "parameter",
                        c10::str(leaf.scalar_type(), leaf.sizes()), program.layouts[p]);
  }
  for (const auto& one : program.instructions) {
    text += fmt::format("\nv{} = {} of v{}, v{}, dim {}, index {} {}", value, kNames[static_cast<size_t>(one.step)],
                        one.a, one.b, one.dim, one.index, one.layout);
    value += one.step == Step::kWrite ? 2 : 1;
  }
  return text;
}

}  // namespace lockstep::fuzz
