#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "consistency/coverage.h"
#include "consistency/ops/op_check.h"
#include "tools/lockstep/reports/verify/verify_page.h"
#include "trainer/dry_run/price_table.h"
#include "trainer/verify/finding.h"

/// What `lockstep verify` finds, and how it says it in JSON (docs/verify.md).
namespace lockstep::tool {

/// Steps of one mesh beside one device.
struct MeshVerdict {
  std::string mesh;
  std::optional<uint64_t> odd_shapes = {};  ///< seed; none: the job's own shapes
  bool agrees = true;
  double loss = 0, gradient = 0, parameter = 0, bytes = 0, ratio = 0;
  int64_t differing_bits = 0;
  struct Losses {
    double mesh, one_device;
  };
  std::map<int64_t, Losses> losses = {};  ///< by step
  std::optional<OpCheck::Counts> ops;     ///< of mode ops
  double run_over_bound = 0;              ///< native: StepCheck::run_over_bound, the largest of all steps
  std::string worst = "-", finding;
  std::string decided_otherwise = {};  ///< StepCheck::decided_otherwise, with its step: the last one
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  std::optional<trainer::PriceTable> prices;  ///< under canonical numerics
  Coverage coverage;
  PageMesh page;
};

/// Adds a step, with what it is reported as if it does not agree.
void add(MeshVerdict& verdict, int64_t step, const trainer::StepCheck& check, const trainer::Finding& finding);

/// All meshes so far.
struct VerifyReport {
  size_t planned = 0;  ///< meshes
  int processes = 1;   ///< that the ranks of each live in
  std::vector<MeshVerdict> verdicts = {};
  bool is_finished = false;
  std::string ended_by = {};  ///< what ended it before that
  /// Seeds with their overrides, if shapes are drawn.
  nlohmann::ordered_json odd_shapes = nlohmann::ordered_json::array();

  bool agrees() const;
  Coverage coverage() const;
};

nlohmann::ordered_json json_of(const VerifyReport& report, const trainer::Job& job);

}  // namespace lockstep::tool
