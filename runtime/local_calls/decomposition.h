#pragma once
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/local_calls/arriving_rows.h"
#include "runtime/local_calls/product_rows.h"

namespace lockstep {

struct Plan;

/// Gathers and reduce-scatters along one mesh axis, taken apart together with the products behind or before them (Wang
/// et al., "Overlap Communication with Dependent Computation via Decomposition in Large Deep Learning Models", ASPLOS
/// 2023): a product begins with the rows that are here while others arrive, and what its first rows give is sent while
/// the next are computed. The rows of a product are computed apart from each other: canonical numerics has the same
/// bits. A World::part().
///
/// One thing is under way at a time. Whoever reads it otherwise, or writes what it is made of, completes it first.
class Decomposition {
 public:
  explicit Decomposition(World& world) : world_(world) {}

  /// From now on collectives along the axis of this name are taken apart; empty: none are. On all ranks alike, each of
  /// which has a process of its own, or none has.
  void set_axis(std::string axis) { axis_ = std::move(axis); }
  /// Whether any are now: where World::overlaps(), between CPUs, and one rank lives in this process.
  bool is_on() const;

  /// `tensor` in another layout of its mesh, if that is a gather that can be taken apart, or the reduce-scatter of a
  /// product that was put off; else undefined, and nothing was done. Without autograd. REQUIRES: is_on().
  at::Tensor redistributed(const at::Tensor& tensor, const Layout& layout);

  /// The rows of a set that have not all been read yet; null: there are none.
  std::shared_ptr<ArrivingRows> arriving(const ShardSet& set) const;
  /// Whether it is the last that was gathered in parts: on all ranks alike, whether or not they have all of it.
  bool was_gathered(const at::Tensor& tensor) const;

  /// The shards of a product of which nothing is computed yet. `whole` gives them all, if they are asked for before
  /// they are scattered; `factors` are read until then.
  std::shared_ptr<ShardSet> put_off(ProductRows rows, std::function<Shards()> whole, std::vector<at::Tensor> factors);

  /// Whether a result is unfinished along the axis.
  bool has_sums_of(const TensorSpec& result) const;

  /// Before these shards are written: completes what reads their bytes.
  void before_write(const Shards& shards);
  /// Completes what is under way.
  void settle();

  /// How many products began with rows that were here, and how many were sent in rows.
  struct Counts {
    int64_t gathers = 0, scatters = 0;
    bool operator==(const Counts&) const = default;
  };
  const Counts& counts() const { return counts_; }
  void count_gather() { ++counts_.gathers; }

  /// Whether a product in parts is to be compared with the whole one: the first of each op, specs, and dimension along
  /// which its rows were gathered or scattered.
  bool compares(const Plan& plan, bool scattered, int dim);

 private:
  /// The shards that `make` gives, of what is under way from now on.
  std::shared_ptr<ShardSet> begin(std::function<Shards()> make, bool partial);
  void forget() { arriving_.reset(), product_.reset(), set_.reset(), reads_.clear(); }
  at::Tensor gathered(const at::Tensor& tensor, const Move& move);
  at::Tensor scattered(const at::Tensor& tensor, const Move& move);
  bool is_along_axis(const Move& move) const;
  static bool is_gather(const Move& move);
  bool is_scatter_of(const ShardSet& set, const Move& move) const;

  World& world_;
  std::string axis_;
  std::weak_ptr<ShardSet> set_;  ///< whose shards are under way, by one of the two
  std::shared_ptr<ArrivingRows> arriving_;
  std::shared_ptr<ProductRows> product_;
  std::vector<at::Tensor> reads_;  ///< what that is made of
  uint64_t begun_ = 0;             ///< how many were under way so far
  std::weak_ptr<ShardSet> last_gathered_;
  std::set<std::tuple<std::string, const TensorSpec*, const TensorSpec*, const TensorSpec*, bool, int>> compared_;
  Counts counts_;
};

}  // namespace lockstep
