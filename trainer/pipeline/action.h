#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

/// What a rank of a pipeline does at a time. Texts are those of PyTorch's pipelining: stage, letter, microbatch.
namespace lockstep::pipeline {

/// A backward may be cut in two, so that weights' gradients, for which no other rank waits, come later: Qi et al.,
/// "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2 (where the first part is called B).
enum class ActionKind : uint8_t {
  kForward,         ///< F
  kBackward,        ///< B: both parts at once
  kBackwardInput,   ///< I: gradients of the inputs, which the stage before waits for
  kBackwardWeight,  ///< W: gradients of the weights
};

inline constexpr int kActionKinds = 4;

/// 'F', 'B', 'I' or 'W'.
char letter_of(ActionKind kind);

/// Whether it gives the stage before what that waits for: B and I.
bool gives_input_gradients(ActionKind kind);

/// Whether its microbatch's activations can go afterwards: B and W.
bool ends_microbatch(ActionKind kind);

struct Action {
  ActionKind kind = ActionKind::kForward;
  int64_t stage = 0, microbatch = 0;
  /// This and the next action of the rank begin together, when both can: PyTorch's OVERLAP_F_B.
  bool overlaps_next = false;

  friend auto operator<=>(const Action&, const Action&) = default;
};

/// Larger numbers of stages and microbatches are taken for mistakes.
inline constexpr int64_t kMostStages = 65536, kMostMicrobatches = 65536, kMostRanks = 4096;

/// "0F1": stage 0, forward, microbatch 1. Whether it overlaps is not said.
std::string text_of(const Action& action);

/// The same backwards: parse_action(text_of(a)) is `a`. BadInput that begins with `where` for any other text, and for
/// numbers from kMostStages and kMostMicrobatches on.
Action parse_action(std::string_view text, std::string_view where);

}  // namespace lockstep::pipeline
