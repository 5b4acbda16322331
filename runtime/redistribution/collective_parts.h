// What the files of the collectives share. Each kind is known by a function that makes one.
#pragma once
#include <functional>

#include "runtime/redistribution/collective.h"

namespace lockstep {

std::unique_ptr<Collective> make_all_gather(const Move& move, Shards shards);
std::unique_ptr<Collective> make_all_to_all(const Move& move, Shards shards);
std::unique_ptr<Collective> make_reduce_scatter(const Move& move, Shards shards);
std::unique_ptr<Collective> make_all_reduce(const Move& move, Shards shards);

/// Which dimension of a shard is the tensor's `dim`: the nodes of an ordered Partial stand in front.
int shard_dim(const TensorSpec& spec, int dim);
/// `body` with the dimension of nodes in front that an ordered Partial's shard has on `rank`.
std::vector<int64_t> with_nodes(const TensorSpec& spec, int rank, std::vector<int64_t> body);
/// Rows `wanted` (global indices) of a shard that holds the rows `held`: a view.
at::Tensor rows(const at::Tensor& shard, int dim, const Range& held, const Range& wanted);
/// What each local rank received, side by side in the order of the group.
Shards concatenate(const Pieces& received, int dim);
/// The local rank that is the first member of the group of local rank `index`; -1 if that one lives elsewhere.
int first_of_group(const Move& move, size_t index);
/// What `make(i)` gives for each local rank, where all members of a group received the same. With `has_one_result`
/// (Collective) it is made for the first member, and the others share its bytes until one of them is written
/// (lazy_copy.h); else for each by itself.
Shards once_per_group(const Move& move, bool has_one_result, const std::function<at::Tensor(size_t)>& make);

/// What a local rank makes of all members' parts of a sum (or of another reduction): the parts added up, or the nodes
/// of an ordered sum joined as far as they meet.
at::Tensor combine_one(const Move& move, size_t index, const std::vector<at::Tensor>& received);
/// The same for each local rank.
Shards combine(const Move& move, const Pieces& received);

/// A round whose result is everything that arrived, along one dimension of the pieces.
class Gathering {
 public:
  explicit Gathering(int dim) : dim_(dim) {}

  /// Collective::destinations(), of a round whose results are like `shards` but for their sizes.
  Pieces destinations(const Collective& collective, int round, const Shards& shards);
  /// The results. Once.
  Shards take(const Collective& collective, const Pieces& received);

 private:
  std::vector<at::Tensor> room_for(const Collective& collective, int round, size_t index,
                                   const at::TensorOptions& options);

  int dim_;
  Shards result_;  ///< if pieces arrive in it
};

}  // namespace lockstep
