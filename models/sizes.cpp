#include "models/sizes.h"

#include <fmt/ranges.h>

#include "runtime/kernels/sums/sum_tree.h"

namespace lockstep::models {

void fail_unknown_flavor(const char* model, const std::string& name, const std::vector<std::string>& known) {
  fail<BadInput>("model.flavor {} is not known for {}; choose one of {}", name, model, fmt::join(known, ", "));
}

void require_multiple(const char* key, int64_t size, const char* of, int64_t unit) {
  if (size % unit != 0)
    fail<BadInput>("model.{} {} is no multiple of model.{} {}; set both so that one divides the other.", key, size, of,
                   unit);
}

int64_t leaf_of(int64_t elements) { return SumTree::over_elements(elements).leaf; }

int64_t groups_per_leaf(int64_t groups, int64_t rows, int64_t columns) {
  const auto fits = [&](int64_t per_group, int64_t count) {
    return count * per_group % leaf_of(groups * per_group) == 0;
  };
  int64_t count = 1;
  while (count < groups && !(fits(rows, count) && fits(columns, count))) ++count;
  return count;
}

}  // namespace lockstep::models
