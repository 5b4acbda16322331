#include "core/suggest.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace lockstep {

int edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::vector<int>> cost(left.size() + 1, std::vector<int>(right.size() + 1));
  for (std::size_t i = 0; i <= left.size(); ++i) {
    for (std::size_t j = 0; j <= right.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = static_cast<int>(i + j);
        continue;
      }
      const int substituted = cost[i - 1][j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[left.size()][right.size()];
}

std::optional<std::string> nearest(std::string_view text, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  int best_distance = std::numeric_limits<int>::max();
  for (const auto& candidate : candidates) {
    const auto [shorter, longer] = std::minmax({static_cast<int>(text.size()), static_cast<int>(candidate.size())});
    const int most = std::max(2, longer / 3);
    if (longer - shorter > most) continue;  // so many edits at least: nothing is computed for a text of megabytes
    const int distance = edit_distance(text, candidate);
    if (distance <= most && distance < longer && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace lockstep
