#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/tensor/layout.h"

/// Redistributions between any two layouts of any mesh.
namespace lockstep::testing {

/// A tensor that moves: plain data, threads share it.
struct LayoutMove {
  std::vector<MeshAxis> axes;
  at::Tensor plain;            ///< small integers, which differ at neighbouring places
  std::string source, target;  ///< Layout::text()
  bool one_round = true;       ///< World::Options::one_round_bytes is as usual
  bool later = false;          ///< redistribute_later()

  int ranks() const;
};

/// Of at most so many ranks; `sums`: Partials are sums and averages, which gradients pass.
LayoutMove draw_move(int most_ranks, bool sums = false);

/// "f32[3,4] [a=S(0)] -> [a=R] on a=2"
std::string describe(const LayoutMove& move);

// Properties, each to be run inside RapidCheck. They count in compared_cases()["layouts"].

/// The target is reached, and the values are what they were: by assignment, or as messages in any order.
void a_move_keeps_values();

/// The gradient of a weighted sum of what has moved, weights in a third layout, is the weights.
void a_move_keeps_gradients();

/// Ranks that are threads with a World each, over the shared memory and the sockets that processes use, get the values,
/// too.
void a_move_between_threads_keeps_values();

/// Messages that get lost, late or wrong: the values, or an error that says so. Counts errors in
/// refused_cases()["layouts"].
void a_faulty_move_ends_in_an_error();

}  // namespace lockstep::testing
