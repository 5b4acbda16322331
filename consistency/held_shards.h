#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/digest/digest.h"
#include "runtime/tensor/shard_set.h"
#include "runtime/tensor/spec.h"

/// A second, plain way to read a sharded tensor. What is checked with it (collectives, redistributions, gather()) has
/// no part in it but for the exchange of pieces between processes.
namespace lockstep {

/// Shards of some ranks, on the CPU.
struct HeldShards {
  const TensorSpec* spec;
  std::vector<int> ranks;
  Shards shards;
  bool is_finished = false;  ///< of a Partial: these are its finished() ones

  // What may say where wrong values come from (origin.h).
  const TensorSpec* source = nullptr;   ///< of what was moved: how it lay before
  std::vector<Digest> old_values = {};  ///< of finished() ones, in their order: what stood there before; empty: unknown
};

/// Those of the ranks that live in this process.
HeldShards local_shards(const at::Tensor& tensor);
HeldShards local_shards(const TensorSpec& spec, ShardSet& set);
/// Of what is not packed. (Packed rows are held as all rows, 0 where there is none.)
HeldShards local_shards(const TensorSpec& spec, const Shards& shards);

/// Those of every rank of the mesh, in the order of their coordinates. Where ranks live in several processes a
/// collective of all of them, on each axis in turn, which is not counted as traffic.
HeldShards all_shards(const HeldShards& local);

/// Of a Partial, what each group of ranks that share a sum (or another reduction) has of it, as its first rank's;
/// others as they are. In the dtype that a finished tensor is stored in. REQUIRES: all_shards().
HeldShards finished(const HeldShards& all);

/// finished(), computed in double: doubles in place of floats.
HeldShards in_doubles(const HeldShards& all);
/// The same of each float's magnitude: of a sum, the sum of its parts' magnitudes.
HeldShards magnitudes(const HeldShards& all);

/// Where several ranks hold an element alike, the first one's; where they hold parts of a sum (or of another
/// reduction), what these combine to. In the dtype of finished(). REQUIRES: all_shards().
at::Tensor whole_of(const HeldShards& all);

/// The ranks that hold parts of one sum (or of another reduction) with `rank`; of what is no Partial itself alone.
std::vector<int> sharers(const TensorSpec& spec, int rank);

/// What `rank` holds of a tensor of which `whole` has the sizes, a sum of it included; a view.
at::Tensor part_of(const TensorSpec& spec, const at::Tensor& whole, int rank);

/// Equal sizes, dtypes and bits.
bool same_bits(const at::Tensor& left, const at::Tensor& right);

}  // namespace lockstep
