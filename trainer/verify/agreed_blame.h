#pragma once
#include <optional>
#include <string>

#include "consistency/blame.h"
#include "consistency/comparison.h"
#include "consistency/moved_value.h"
#include "replay/store/op_case.h"

/// What each process sees of a step that is not one device's, made what all of them say. Collectives of a whole mesh.
namespace lockstep::trainer {

/// What the lowest rank sees that sees any, and on one that does not see it itself whose it is; empty if none does.
std::string agreed_difference(const Mesh& mesh, const Comparison& comparison);

/// What comes first in the program of all that ranks blame, and whether this process blames it.
struct AgreedBlame {
  Blame blame;
  bool is_here;
};
std::optional<AgreedBlame> agreed_blame(const Mesh& mesh, const std::optional<Blame>& mine);

/// What every process has of a case, on who blames it; nothing if a process has none.
std::optional<replay::OpCase> joined_case(const Mesh& mesh, const AgreedBlame& agreed,
                                          std::optional<replay::OpCase> part);

/// The case of the move that is to blame, on who blames it. `mine`, `moved`: what this process blames, and of a move
/// what moved. REQUIRES: agreed.blame.is_of_move().
std::optional<replay::OpCase> case_of_move(const Mesh& mesh, const AgreedBlame& agreed,
                                           const std::optional<Blame>& mine, const std::optional<MovedValue>& moved);

}  // namespace lockstep::trainer
