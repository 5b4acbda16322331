#include "trainer/pipeline/action.h"

#include <charconv>
#include <optional>

#include "core/error.h"

namespace lockstep::pipeline {
namespace {

constexpr std::string_view kLetters = "FBIW";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes a number from the front of `text`; none if there is none, or one that is too large for any use.
std::optional<int64_t> take_number(std::string_view& text) {
  if (text.empty() || !is_digit(text.front())) return {};
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::optional<Action> parsed(std::string_view text) {
  const auto stage = take_number(text);
  if (!stage || text.empty()) return {};
  const auto letter = kLetters.find(text.front());
  if (letter == kLetters.npos) return {};
  text.remove_prefix(1);
  const auto microbatch = take_number(text);
  if (!microbatch || !text.empty()) return {};
  return Action{static_cast<ActionKind>(letter), *stage, *microbatch};
}

}  // namespace

char letter_of(ActionKind kind) { return kLetters[static_cast<size_t>(kind)]; }

bool gives_input_gradients(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
}

bool ends_microbatch(ActionKind kind) { return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight; }

std::string text_of(const Action& action) {
  return fmt::format("{}{}{}", action.stage, letter_of(action.kind), action.microbatch);
}

Action parse_action(std::string_view text, std::string_view where) {
  const auto action = parsed(text);
  if (!action)
    fail<BadInput>("{}: \"{}\" is no action. Stage, F, B, I or W, and microbatch were expected, such as 0F1.", where,
                   text);
  if (action->stage >= kMostStages || action->microbatch >= kMostMicrobatches)
    fail<BadInput>("{}: {} has too large a number; stages go to {}, microbatches to {}.", where, text, kMostStages - 1,
                   kMostMicrobatches - 1);
  return *action;
}

}  // namespace lockstep::pipeline
