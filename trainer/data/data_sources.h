#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::trainer {

/// Files that are one after the other, and what share of a mixture they are.
struct DataSource {
  std::string written;  ///< the entry, for messages
  std::vector<std::string> files;
  int64_t weight = 1;  ///< of the sum of all
};

/// What entries of training.dataset_path stand for. Each is a file, a glob ("web/*.bin": `*` and `?` in the last part)
/// or a folder (its .bin files), the last two in the order of their names; with ":WEIGHT" behind it, a decimal number
/// above 0 of at most six places, a part of a mixture. Without weights all are one source, in the order given.
///
/// Weights become whole numbers without a common divisor: 0.7 and 0.3 are 7 and 3.
///
/// BadInput for an empty list, an entry that no file fits, weights for some only, a weight that is none, weights whose
/// sum is above 2^20, an entry that is a file with its weight and without it, a file that occurs twice.
std::vector<DataSource> data_sources(const std::vector<std::string>& entries);

}  // namespace lockstep::trainer
