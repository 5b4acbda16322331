#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::bench {

/// All calls of one op with the same sizes, of one step (means over several).
struct OpCost {
  std::string op;     ///< "mesh::linear"
  std::string sizes;  ///< of its operands: "512x256, 768x256"
  double calls = 0;
  double seconds = 0;  ///< of this thread
  double bytes = 0;    ///< of operands and results, each once
  double flops = 0;    ///< multiplications and additions of products and attention; 0 of all else
};

/// What the machine does on one thread (runtime/kernels/speed/machine_speed.h): a large float32 product, a copy.
struct MachineLimits {
  double flops_per_second = 0;
  double bytes_per_second = 0;
};

struct StepProfile {
  MachineLimits limits;
  double step_seconds = 0;     ///< unobserved, of this thread
  double page_faults = 0;      ///< in a step, unobserved: pages of memory that the system had to give
  double product_seconds = 0;  ///< of the ops that are products, in the step
  double product_seconds_alone =
      0;                    ///< of the same products one after the other, each alone on memory that is in cache
  std::vector<OpCost> ops;  ///< the dearest first
};

/// A step of the debugmodel with 512 tokens on one rank under canonical numerics, one thread, op by op.
StepProfile profile_step();

/// All products of such a step, one after the other and nothing in between, each time that it is called. This process
/// has one thread from here on.
std::function<void()> products_of_a_step();

}  // namespace lockstep::bench
