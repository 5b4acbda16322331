#pragma once
#include "fuzz/calls/drawn_mesh.h"
#include "fuzz/trials/gradients.h"
#include "fuzz/trials/rule_properties.h"

namespace lockstep::testing {

/// How the bytes of a trial move.
enum class Delivery {
  kDirect,    ///< by assignment
  kMessages,  ///< as messages that arrive in a seeded order
  kTwoGroups  ///< as messages between two threads, each with a World of every other rank
};

/// One call under canonical numerics: operands, where they lie on a mesh, and how bytes move. Plain data: threads share
/// it.
struct CanonicalCase {
  OpCall call;
  std::vector<MeshAxis> axes = {};
  struct Operand {
    Placements placements;
    bool turned = false;  ///< its strides are a transposed tensor's
  };
  std::vector<Operand> operands = {};  ///< per slot
  LinearFunctions functions = {};      ///< whose gradients are asked for; or none
  std::vector<Operand> weight_places = {};
  int64_t batch_rows = 0;      ///< of the BatchScope around the call; 0: outside of every scope
  int64_t rounded_levels = 0;  ///< World::Options::rounded_levels
  Delivery delivery = Delivery::kDirect;
  uint64_t seed = 0;
};

/// What one World made of a call: whole tensors, or why there are none.
struct CanonicalOutcome {
  std::vector<at::Tensor> tensors;  ///< results and written arguments; or gradients, undefined where there is none
  std::string refusal;
};

/// A random call of the op, its layouts and delivery. `gradients`: those of a random linear function of its results,
/// or of a random linear function of those.
CanonicalCase draw_canonical(const OpCase& op_case, Reach reach, bool gradients, bool special_values = false);

/// The call on a mesh of one rank.
CanonicalOutcome on_one_rank(const CanonicalCase& trial, std::shared_ptr<const RuleSet> rules = {});
/// The call as it was drawn, as every group of ranks sees it.
std::vector<CanonicalOutcome> on_the_mesh(const CanonicalCase& trial, std::shared_ptr<const RuleSet> rules = {});

/// Where two outcomes differ in a bit (NaN is one value); empty if they do not. A write that would have to move its
/// target may be refused on a mesh alone.
std::string bit_difference(const CanonicalOutcome& actual, const CanonicalOutcome& expected);

/// "mm(f32[3,4], f32[4,5]) with [a=S(0)], [a=R] on a=2, batch 3, messages (seed 7)"
std::string describe(const CanonicalCase& trial);

/// How many cases of a row, for each reach, one run of the tests tries: so many that no fault of
/// canonical_mutants_test.cpp gets through. A sum in a wrong order shows in few sizes, cuts and values.
int canonical_case_count(const OpCase& op_case);

/// Property: a random case gives one rank's bits on the mesh; `rules` are the mesh's.
void canonical_bits_equal_one_rank(const OpCase& op_case, Reach reach, bool gradients,
                                   std::shared_ptr<const RuleSet> rules = {});

/// Property: a random case on one rank is close to LibTorch's result in float64; `rules` are the rank's.
void canonical_values_are_close(const OpCase& op_case, Reach reach, bool gradients,
                                std::shared_ptr<const RuleSet> rules = {});

}  // namespace lockstep::testing
