#pragma once
#include <rapidcheck.h>

#include "fuzz/cases/tensors.h"
#include "runtime/context/world.h"

/// Tensors at odd places of memory: what is at an element's left, its alignment and its strides must not matter.
namespace lockstep::testing {

/// Runs ops on a mesh of one rank in canonical numerics.
class OneRank {
 public:
  OneRank() : world_(simulated_world({{"one", 1}}, options())), mesh_(world_->mesh("one=1")) {}
  at::Tensor put(const at::Tensor& plain) const { return distribute(plain, Layout::replicated(mesh_)); }

  /// The same values as a view of a larger tensor: a part of one of its dimensions, every third element, turned.
  at::Tensor put_anywhere(const at::Tensor& plain) const {
    const auto dim = plain.dim() > 0 ? *rc::gen::inRange<int64_t>(0, plain.dim()) : 0;
    const int kind = *rc::gen::inRange(0, plain.dim() > 0 ? 4 : 1);
    if (kind == 1) return put_into(plain, dim, *rc::gen::inRange<int64_t>(0, 17), *rc::gen::inRange<int64_t>(0, 3));
    if (kind == 2) {
      const auto stack = at::stack({at::ones_like(plain), plain, at::ones_like(plain)}, plain.dim());
      return put(stack).select(plain.dim(), 1);
    }
    if (kind == 3) return put(plain.transpose(0, dim).contiguous()).transpose(0, dim);
    return put(plain);
  }

 private:
  static World::Options options() {
    World::Options options;
    options.numerics = lockstep::Numerics::kCanonical;
    return options;
  }
  at::Tensor put_into(const at::Tensor& plain, int64_t dim, int64_t before, int64_t behind) const {
    const auto beside = [&](int64_t size) {
      auto sizes = plain.sizes().vec();
      sizes[static_cast<size_t>(dim)] = size;
      return at::ones(sizes, plain.options());
    };
    return put(at::cat({beside(before), plain, beside(behind)}, dim)).narrow(dim, before, plain.size(dim));
  }

  std::unique_ptr<World> world_;
  const Mesh& mesh_;
};

}  // namespace lockstep::testing
