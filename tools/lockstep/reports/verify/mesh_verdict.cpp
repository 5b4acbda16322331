#include "tools/lockstep/reports/verify/mesh_verdict.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "tools/lockstep/reports/coverage_report.h"
#include "tools/lockstep/reports/page_facts.h"
#include "tools/lockstep/reports/verify/price_report.h"

namespace lockstep::tool {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const trainer::StepCheck& check, int64_t step, const trainer::Finding& finding) {
  const auto& blame = check.blame.value();
  return {{"step", step},
          {"kind", blame.kind},
          {"op", blame.op},
          {"phase", blame.phase},
          {"module", blame.module},
          {"id", blame.id},
          {"collective", blame.collective},
          {"axis", blame.axis},
          {"group", blame.group},
          {"rank", blame.ranks.empty() ? Json() : Json(blame.ranks[0])},
          {"ranks", blame.ranks},
          {"rule", blame.rule},
          {"layouts", blame.layouts},
          {"worst", blame.worst},
          {"pattern", blame.pattern},
          {"before", blame.before},
          {"limits", blame.limits},
          {"transient", blame.transient},
          {"difference", check.difference},
          {"case", finding.case_file},
          {"next", finding.next}};
}

/// Bits have no bound: equal (0), or not (null). Else of the pair in double, and of the run that trains and its ops.
Json error_over_bound(const MeshVerdict& verdict, bool bits) {
  if (bits) return verdict.agrees ? Json(0.0) : nullptr;
  const double pair = std::max({verdict.loss, verdict.gradient, verdict.parameter}) / kFloat64Tolerance;
  return std::max({pair, verdict.run_over_bound, verdict.ops ? verdict.ops->over_bound : 0.0});
}

Json ops_json(const std::optional<OpCheck::Counts>& ops) {
  if (!ops) return nullptr;
  return {{"seen", ops->ops},
          {"compared", ops->compared_ops},
          {"moves_seen", ops->moves},
          {"moves_compared", ops->compared_moves},
          {"without_bound", ops->without_bound},
          {"worst_error_over_bound", ops->over_bound}};
}

Json losses_json(const MeshVerdict& verdict) {
  Json rows = Json::array();
  for (const auto& [step, losses] : verdict.losses)
    rows.push_back({{"step", step}, {"loss", losses.mesh}, {"one_device", losses.one_device}});
  return rows;
}

void add_prices(Json& row, const trainer::PriceTable& prices) {
  row["native_bytes_per_step"] = prices.native_bytes;
  row["collectives"] = prices_json(prices);
  row["gathered"] = gathered_json(prices.gathered);
}

Json json_of(const MeshVerdict& verdict, const trainer::Job& job) {
  const bool bits = job.numerics.is_canonical();
  Json row{{"mesh", verdict.mesh},
           {"verdict", verdict.agrees ? "pass" : "fail"},
           {"domain", bits ? "native" : "float64"},
           {"numerics", job.numerics.mode},
           {"loss_max_relative", verdict.loss},
           {"grad_max_relative", verdict.gradient},
           {"parameter_max_relative", verdict.parameter},
           {"worst_error_over_bound", error_over_bound(verdict, bits)},
           {"differing_bits", bits ? Json(verdict.differing_bits) : nullptr},
           {"threads", at::get_num_threads()},
           {"worst_op", verdict.worst},
           {"ops", ops_json(verdict.ops)},
           {"losses", losses_json(verdict)},
           {"findings", verdict.findings},
           {"bytes_per_step", verdict.bytes}};
  const bool was_watched = !verdict.coverage.rows.empty();  // not where an earlier step differs
  row["coverage"] = was_watched ? coverage_json(verdict.coverage) : nullptr;
  if (verdict.odd_shapes) row["odd_shapes"] = *verdict.odd_shapes;
  if (verdict.prices) add_prices(row, *verdict.prices);
  return row;
}

}  // namespace

void add(MeshVerdict& verdict, int64_t step, const trainer::StepCheck& check, const trainer::Finding& finding) {
  add_check(verdict.page, step, check);
  verdict.agrees = check.agrees();
  verdict.loss = std::max(verdict.loss, check.comparison.loss);
  verdict.gradient = std::max(verdict.gradient, check.comparison.gradient);
  verdict.parameter = std::max(verdict.parameter, check.comparison.parameter);
  verdict.losses[step] = {check.result.loss, check.reference_loss};
  verdict.differing_bits += check.comparison.differing_bits;
  verdict.bytes = check.bytes;
  verdict.ratio = check.seconds_ratio;
  if (check.ops) verdict.ops = check.ops;
  if (check.agrees() && !check.decided_otherwise.empty()) verdict.decided_otherwise = check.decided_otherwise;
  verdict.run_over_bound = std::max(verdict.run_over_bound, check.run_over_bound);
  if (verdict.agrees) return;
  const auto& blame = check.blame.value();
  verdict.worst = blame.op.empty() ? blame.kind : blame.op;
  verdict.finding = fmt::format("INCONSISTENT  mesh {}, step {}: {}", verdict.mesh, step, finding.text);
  verdict.findings.push_back(json_of(check, step, finding));
  verdict.page.findings.push_back(finding_on_page(step, check, finding.next));
  complete(verdict.page, verdict.finding);
}

bool VerifyReport::agrees() const { return std::ranges::all_of(verdicts, &MeshVerdict::agrees); }

Coverage VerifyReport::coverage() const {
  Coverage all;
  for (const auto& verdict : verdicts) all.add(verdict.coverage);
  return all;
}

Json json_of(const VerifyReport& report, const trainer::Job& job) {
  Json rows = Json::array();
  for (const auto& verdict : report.verdicts) rows.push_back(json_of(verdict, job));
  const bool is_open = report.agrees() && !report.is_finished;
  Json json{{"job", job.job.description},
            {"seed", job.debug.seed},
            {"processes", report.processes},
            {"planned", report.planned},
            {"finished", report.is_finished},
            {"meshes", rows},
            {"coverage", coverage_json(report.coverage())},
            {"verdict", is_open           ? Json()
                        : report.agrees() ? "pass"
                                          : "fail"}};
  if (!report.odd_shapes.empty()) json["odd_shapes"] = report.odd_shapes;
  if (!report.ended_by.empty()) json["ended_by"] = report.ended_by;
  return json;
}

}  // namespace lockstep::tool
