#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "rng/distribution.h"

/// What a fused parameter is made of: tensors with names of their own, under which they are drawn and stored.
namespace lockstep::models {

/// Initial values of a tensor: a constant, or a distribution drawn by the tensor's name and global index.
struct Initial {
  bool is_constant = true;
  double constant = 0;
  rng::Distribution distribution = {};

  static Initial fill(double value) { return {true, value, {}}; }
  static Initial drawn(const rng::Distribution& distribution) { return {false, 0, distribution}; }
};

/// One of the tensors: the next `rows` rows of every group of the parameter's rows.
struct Part {
  std::string name;  ///< "layers.0.attention.wq.weight"
  int64_t rows;      ///< of a group
  Initial initial;
};

/// Consecutive rows of a parameter that are consecutive rows of one part.
struct PartRows {
  int64_t row;       ///< the first, of the parameter
  int64_t part_row;  ///< the same row's number in the part
  int64_t count;
};

/// How the rows of a parameter divide into parts: it is a sequence of groups of rows, and each group holds some rows of
/// every part, in the order of the parts. A part's rows keep their order.
class Division {
 public:
  /// REQUIRES: at least one part, and whole groups.
  Division(std::vector<int64_t> sizes, std::vector<Part> parts);

  const std::vector<Part>& parts() const { return parts_; }
  /// Sizes of a part.
  std::vector<int64_t> sizes_of(size_t part) const;
  /// The rows of a part among `count` rows of the parameter from `first`: runs in ascending order, without holes in the
  /// part.
  std::vector<PartRows> rows_of(size_t part, int64_t first, int64_t count) const;

 private:
  std::vector<int64_t> sizes_;  ///< of the parameter
  std::vector<Part> parts_;
  std::vector<int64_t> starts_;  ///< of each part in a group
  int64_t group_rows_ = 0;
};

}  // namespace lockstep::models
