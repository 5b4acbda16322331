#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "consistency/blame.h"
#include "consistency/moved_value.h"
#include "consistency/ops/rounding.h"

namespace lockstep {

/// Compares ops of a run, each by itself, with one device's on the same operands; and moves of tensors between layouts
/// with themselves. Canonical numerics: bits. Native: to what their roundings may make of them (rounding.h); what
/// rounds nothing has to be equal there, too. What it compares is the same on all ranks; collectives of all of them.
///
/// Each is a step of a proof: where all ops and all moves of a step agree, what the step gave differs from the exact
/// result by roundings alone.
class OpCheck final : public Observer {
 public:
  enum class Updates { kSampled, kAll };
  /// `sample`: one op (or move) of so many, other ones in each step; 1 = all. `updates`: whether those of the optimizer
  /// (writes_state(), shares_update()) are among them, or compared all. `run` must outlive this.
  OpCheck(const World& run, int64_t sample, Updates updates = Updates::kSampled);

  void before_op(const OpEvent& event) override;
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void after_move(const MoveEvent& event) override;

  /// The first that differs.
  const std::optional<Blame>& blame() const { return blame_; }
  /// What one device computes, if that is an op: its results without views.
  const std::vector<at::Tensor>& expected() const { return expected_; }

  /// What moved, if that is a move.
  const std::optional<MovedValue>& moved() const { return moved_; }

  struct Counts {
    int64_t ops = 0, moves = 0;                    ///< that were seen
    int64_t compared_ops = 0, compared_moves = 0;  ///< of these
    int64_t without_bound = 0;                     ///< that were to be, under native numerics, and have none
    double over_bound = 0;                         ///< the largest error, as a share of what is allowed to it

    std::string text() const;  ///< "212 of 10600 ops and 12 of 602 moves"
  };
  const Counts& counts() const { return counts_; }

  /// The ops of the optimizer since this was asked last (text_of_update()).
  std::vector<std::string> take_updates() { return std::exchange(seen_updates_, {}); }

  /// Hears, in before_op(), of each op that is going to be compared.
  void on_chosen(std::function<void(const OpEvent&)> listener) { listener_ = std::move(listener); }

 private:
  /// An op that began and is going to be compared.
  struct Begun {
    std::string id;
    TakenOperands operands;
  };

  bool is_sampled(const std::string& id) const;
  void compare_with_one_device(const OpEvent& event, const TakenOperands& operands,
                               std::span<const c10::IValue> results);
  /// `wrong`: the number of the result that has it.
  std::optional<Difference> first_difference(const TakenOp& op, const std::vector<HeldShards>& results, size_t& wrong);
  void note(Blame blame);

  bool bits_;
  int64_t sample_;
  Updates updates_;
  OneDevice declared_, double_;
  std::vector<Begun> begun_;  ///< ops may nest
  std::optional<Blame> blame_;
  std::optional<MovedValue> moved_;
  std::vector<at::Tensor> expected_;
  Counts counts_;
  std::vector<std::string> seen_updates_;
  std::function<void(const OpEvent&)> listener_;
};

}  // namespace lockstep
