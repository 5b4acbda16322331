#include "replay/view/trace_diff.h"

#include <fmt/format.h>

#include <bit>
#include <optional>

#include "core/numerics_version.h"
#include "core/op_text.h"
#include "replay/format/recorded_numerics.h"

namespace lockstep::replay {
namespace {

struct Identified {
  std::string id;
  const RecordedResult* result;
};

/// Every result with the text of its op and its number. No two are alike: those that come again are counted.
std::vector<Identified> with_ids(const StepRecording& recording) {
  std::vector<Identified> results;
  std::map<std::string, size_t> times;
  for (const auto& result : recording.results) {
    auto id = fmt::format("{} result {}", text_of(recording.ops[result.op].id, recording), result.index);
    if (const auto again = times[id]++; again > 0) id += fmt::format(" (again, {})", again);
    results.push_back({std::move(id), &result});
  }
  return results;
}

std::map<std::string, const RecordedResult*> by_id(const StepRecording& recording) {
  std::map<std::string, const RecordedResult*> results;
  for (auto& [id, result] : with_ids(recording)) results.emplace(std::move(id), result);
  return results;
}

std::optional<double> scalar_of(const StepRecording& recording, const std::string& name) {
  for (const auto& scalar : recording.scalars)
    if (scalar.name == name) return std::bit_cast<double>(scalar.bits);
  return std::nullopt;
}

bool is_whole(const std::string& layout) {
  return layout.find("=S(") == layout.npos && layout.find("=P(") == layout.npos;
}

/// The tensor without its placements: "f32[8,4]".
std::string tensor_of(const std::string& layout) { return layout.substr(0, layout.find(' ')); }

bool is_comparable(const std::string& left, const std::string& right, const RecordedResult& a,
                   const RecordedResult& b) {
  if (a.kind != ResultKind::kDigest || b.kind != ResultKind::kDigest) return false;
  return left == right || (is_whole(left) && is_whole(right) && tensor_of(left) == tensor_of(right));
}

class Comparison {
 public:
  Comparison(const StepRecording& left, const StepRecording& right)
      : left_(left), right_(right), left_results_(by_id(left)), right_results_(by_id(right)) {}

  TraceDiff run() {
    for (const auto& [id, result] : with_ids(left_)) compare(id, *result);
    for (const auto& [id, result] : right_results_)
      if (!left_results_.contains(id)) count(right_, *result, &DiffCounts::only_right);
    compare_scalars();
    compare_batches();
    compare_states();
    compare_numerics();
    return std::move(diff_);
  }

 private:
  void count(const StepRecording& recording, const RecordedResult& result, size_t DiffCounts::*member) {
    ++(diff_.all.*member);
    ++(diff_.by_module[recording.names[recording.ops[result.op].id.module]].*member);
  }

  void compare(const std::string& id, const RecordedResult& mine) {
    const auto found = right_results_.find(id);
    if (found == right_results_.end()) return count(left_, mine, &DiffCounts::only_left);
    const auto& theirs = *found->second;
    const auto &left = left_.names[mine.layout], &right = right_.names[theirs.layout];
    if (!is_comparable(left, right, mine, theirs)) return count(left_, mine, &DiffCounts::incomparable);
    if (mine.digest == theirs.digest) return count(left_, mine, &DiffCounts::same);
    count(left_, mine, &DiffCounts::different);
    if (diff_.first.empty())
      diff_.first =
          fmt::format("{}\n  left   {} {}\n  right  {} {}", id, left, mine.digest.text(), right, theirs.digest.text());
  }

  void compare_scalars() {
    for (const auto& mine : left_.scalars)
      for (const auto& theirs : right_.scalars)
        if (mine.name == theirs.name && mine.bits != theirs.bits)
          diff_.scalars.push_back(fmt::format("{}: {}, {}", mine.name, std::bit_cast<double>(mine.bits),
                                              std::bit_cast<double>(theirs.bits)));
    for (const auto& mine : left_.scalars)
      if (!scalar_of(right_, mine.name))
        diff_.scalars.push_back(fmt::format("{}: {}, none", mine.name, std::bit_cast<double>(mine.bits)));
    for (const auto& theirs : right_.scalars)
      if (!scalar_of(left_, theirs.name))
        diff_.scalars.push_back(fmt::format("{}: none, {}", theirs.name, std::bit_cast<double>(theirs.bits)));
  }

  /// The global batch is the same on all meshes.
  void compare_batches() {
    if (left_.rows != right_.rows || left_.seq_len != right_.seq_len)
      diff_.batch =
          fmt::format("{} x {} tokens, {} x {} tokens", left_.rows, left_.seq_len, right_.rows, right_.seq_len);
    else if (left_.tokens != right_.tokens || left_.labels != right_.labels)
      diff_.batch = left_.tokens != right_.tokens ? "other tokens" : "other labels";
    else if (left_.positions != right_.positions)
      diff_.batch = "other documents";
    else if (left_.first_sample != right_.first_sample)
      diff_.batch = fmt::format("first sample {}, first sample {}", left_.first_sample, right_.first_sample);
  }

  void compare_states() {
    const auto &left = left_.state_digest, &right = right_.state_digest;
    if (!left.empty() && !right.empty() && left != right) diff_.state = fmt::format("{}, {}", left, right);
  }

  void compare_numerics() {
    const auto left = numerics_version_of(left_), right = numerics_version_of(right_);
    const bool are_known = left && right;
    if (left == right || (!are_known && diff_.agrees())) return;
    diff_.numerics = fmt::format("left by {}, right by {}: canonical bits may differ for that alone",
                                 numerics_version_text(left), numerics_version_text(right));
  }

  const StepRecording &left_, &right_;
  std::map<std::string, const RecordedResult*> left_results_, right_results_;
  TraceDiff diff_;
};

}  // namespace

std::string text_of(const RecordedId& id, const StepRecording& recording) {
  return op_text(id.microbatch, static_cast<Phase>(id.phase), recording.names[id.module], recording.names[id.op],
                 id.occurrence);
}

TraceDiff diff(const StepRecording& left, const StepRecording& right) { return Comparison(left, right).run(); }

}  // namespace lockstep::replay
