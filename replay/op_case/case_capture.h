#pragma once
#include <map>
#include <optional>

#include "replay/store/op_case.h"
#include "runtime/context/observer.h"

namespace lockstep::replay {

/// Makes a case of one op of a run: everything that it takes, at the moment when it begins. Where the ranks live in
/// many processes, the part of this one (case_parts.h).
class CaseCapture final : public Observer {
 public:
  /// `id`: OpId::text().
  explicit CaseCapture(std::string id) : id_(std::move(id)) {}

  void before_op(const OpEvent& event) override;

  /// With what one device gives, in the order of the op's results (computed_results()). Nothing if the op did not come,
  /// or takes what a case cannot hold (then `why_not()` says what).
  std::optional<OpCase> take(const std::string& finding, const std::vector<at::Tensor>& expected);
  const std::string& why_not() const { return why_not_; }

 private:
  std::string id_, why_not_ = "the op did not come again";
  std::optional<OpCase> case_;
};

}  // namespace lockstep::replay
