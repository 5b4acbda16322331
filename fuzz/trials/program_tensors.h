#pragma once
#include <rapidcheck.h>

#include <functional>
#include <string>
#include <vector>

#include "fuzz/calls/drawn_mesh.h"
#include "fuzz/trials/rule_properties.h"

namespace lockstep::testing {

inline int draw(int low, int high) { return *rc::gen::inRange(low, high + 1); }
inline size_t draw_index(int count) { return static_cast<size_t>(draw(0, count - 1)); }
inline int64_t draw_dim(const at::Tensor& x) { return draw(0, static_cast<int>(x.dim()) - 1); }

/// One tensor of a program: on one device, and on the mesh.
struct Pair {
  at::Tensor plain, mesh;
};

/// The tensors of a random program on a random mesh, and what was done to them so far.
class ProgramTensors {
 public:
  /// One or two inputs, of any sizes and layouts.
  explicit ProgramTensors(lockstep::Numerics numerics);

 protected:
  /// A call on one side's tensors: `t` is the operand's, others are reached through `side`.
  using Call = std::function<at::Tensor(const at::Tensor& t, at::Tensor Pair::*side)>;

  Pair& any() { return tensors_[draw_index(static_cast<int>(tensors_.size()))]; }
  /// Runs `call` on the mesh, then on one device: both refuse it, or neither, but for writes to what would have to move
  /// first. Fails the property otherwise. `makes_tensor`: the result is one of the program's tensors from now on.
  void apply(const std::string& name, const Pair& operand, const Call& call, bool makes_tensor);
  /// The last step was refused as it should be.
  void note(const char* text);
  /// Fails the property where a tensor of the mesh is not what it is on one device.
  void compare() const;

  DrawnMesh drawn_;
  std::vector<Pair> tensors_;
  std::string text_;  ///< the program, a line for each step
  int64_t refused_ = 0;

 private:
  void add_input();
};

}  // namespace lockstep::testing
