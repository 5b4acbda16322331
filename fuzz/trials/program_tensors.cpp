#include "fuzz/trials/program_tensors.h"

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::testing {
namespace {

/// What the mesh may refuse: to write what it would have to move first. Nothing is written then.
bool may_refuse(const std::string& text) {
  return text.find("would have to move") != std::string::npos || text.find("unfinished sum") != std::string::npos;
}

}  // namespace

ProgramTensors::ProgramTensors(lockstep::Numerics numerics)
    : drawn_(Domain::kDeclared, built_in_rules(numerics), false, numerics) {
  for (int i = draw(1, 2); i > 0; --i) add_input();
}

void ProgramTensors::add_input() {
  Sizes sizes;
  for (int d = draw(0, 3); d > 0; --d) sizes.push_back(draw(1, 5));
  const auto plain = exact_tensor(sizes, draw(0, 3) == 3 ? c10::kLong : c10::kFloat, 7);
  tensors_.push_back({plain.clone(), scatter(plain, draw_layout(*drawn_.mesh, plain))});
  text_ += fmt::format("\n  t{} = {} {}", tensors_.size() - 1, c10::str(plain.sizes()),
                       layout_of(tensors_.back().mesh).text());
}

void ProgramTensors::apply(const std::string& name, const Pair& operand, const Call& call, bool makes_tensor) {
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

void ProgramTensors::note(const char* text) {
  text_ += text;
  ++refused_;
}

void ProgramTensors::compare() const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto what = difference(tensors_[i].mesh, tensors_[i].plain, {}, true);
    if (!what.empty()) RC_FAIL(fmt::format("on {}:{}\n  t{}: {}", drawn_.mesh->text(), text_, i, what));
  }
}

}  // namespace lockstep::testing
