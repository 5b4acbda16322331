#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/tensor/mesh.h"

/// The one place where, after they have met, any rank's finding or error becomes everyone's (before: agreement.h).
///
/// All are collectives of a whole mesh: each rank calls them, whatever it has to say. Ranks of one process speak as
/// one.
namespace lockstep::trainer {

/// What a rank found in a program that all ranks run.
struct Found {
  int64_t position = 0;  ///< in the program: what comes earlier counts
  std::string text;
  int rank = 0;  ///< whose it is; set by earliest()
};

/// The finding with the lowest position, of several the lowest rank's, on every rank; none if no rank has one.
std::optional<Found> earliest(const Mesh& mesh, const std::optional<Found>& mine);

/// Runs `work` here, in this thread. If it throws on any rank, then on all: the lowest rank's error, with its exit
/// code, and with "rank N: " before it unless all say the same.
void agreed(const Mesh& mesh, const std::function<void()>& work);

/// agreed() for work on files, which may take longer than others wait for a message: it runs in a thread of its own,
/// while this one tells the other ranks several times a second that it lives. `work` must neither communicate nor touch
/// tensors of the mesh that are pending.
void together(const Mesh& mesh, const std::function<void()>& work);

}  // namespace lockstep::trainer
