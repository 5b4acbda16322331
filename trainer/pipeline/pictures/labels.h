#pragma once
#include <string>

#include "trainer/pipeline/schedule.h"

namespace lockstep::pipeline {

/// What is written on the actions of a picture: kind and microbatch, "F3". Of two stages per rank the second has small
/// letters, "f3"; of more the stage stands before, as in "9F3".
class Labels {
 public:
  explicit Labels(const Schedule& schedule);

  std::string of(const Action& action) const;
  /// The longest there is.
  size_t width() const { return width_; }
  /// What the letters mean, on one line.
  std::string legend() const;

  /// Whether it is the first stage of its rank, its second, ...
  size_t number_on_rank(int64_t stage) const { return numbers_[static_cast<size_t>(stage)]; }
  /// Of the rank that has the most.
  size_t stages_per_rank() const { return most_; }

 private:
  std::vector<size_t> numbers_;
  size_t most_ = 0, width_ = 0;
  bool has_parts_ = false;
};

}  // namespace lockstep::pipeline
