#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "fuzz/trials/canonical_trial.h"

/// Random programs with gradients, as data: one is drawn once, and run on one device, on one rank and on a mesh.
namespace lockstep::fuzz {

/// What an instruction makes of values[a] (and values[b]); each but kWrite makes one value, kWrite what it wrote to
/// and the view that it wrote through.
enum class Step {
  kAdd,
  kSubtract,
  kMultiply,
  kMatmul,
  kTanh,
  kSine,
  kSigmoid,
  kSoftmax,  ///< along dim
  kSum,      ///< along dim, which stays
  kMean,     ///< of all
  kTranspose,
  kSelect,
  kNarrow,
  kUnsqueeze,
  kFlatten,
  kExpand,  ///< twice itself, along a new first dimension
  kJoin,    ///< cat along dim
  kWrite,   ///< into a view of a view of a copy, which lies as layout says
  kDropout,
  kCheckpoint,    ///< a region that is run again in backward
  kRedistribute,  ///< to layout
  kRelu,          ///< from here on with edges: where bits are compared
  kMaximum,
  kRepeat  ///< no step, but the number of them
};

struct Instruction {
  Step step = Step::kTanh;
  size_t a = 0, b = 0;
  int64_t dim = 0, index = 0;
  std::string layout = {};
};

struct Program {
  std::vector<MeshAxis> axes;
  bool canonical = false;
  std::vector<at::Tensor> parameters;           ///< the first without dimensions
  std::vector<std::vector<at::Tensor>> inputs;  ///< of each microbatch
  std::vector<std::string> layouts;             ///< of the parameters, then of the inputs
  std::vector<Instruction> instructions;
  testing::Delivery delivery = testing::Delivery::kDirect;
  uint64_t seed = 0;

  bool draws() const;  ///< random numbers: LibTorch has other ones
  int ranks() const;
};

/// Inside RapidCheck: 2 to 40 instructions, whose sizes fit and whose values stay small.
Program draw_program(bool canonical);

/// A line for each value.
std::string to_text(const Program& program);

}  // namespace lockstep::fuzz
