#include "tools/lockstep/reports/verify/joined_check.h"

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trainer/launch/rank_texts.h"

namespace lockstep::tool {
namespace {

using Json = nlohmann::json;

/// JSON has no number that is not finite.
uint64_t bits(double number) { return std::bit_cast<uint64_t>(number); }
double number(const Json& bits) { return std::bit_cast<double>(bits.get<uint64_t>()); }

/// The larger; what is no number is larger than all.
void raise(double& to, double other) {
  if (!std::isnan(to) && !(other <= to)) to = other;
}

Json to_json(const Coverage& coverage) {
  return {coverage.rows, coverage.candidates, coverage.moves, coverage.collectives, coverage.group_sizes};
}

Coverage to_coverage(const Json& json) {
  Coverage coverage;
  json.at(0).get_to(coverage.rows);
  json.at(1).get_to(coverage.candidates);
  json.at(2).get_to(coverage.moves);
  json.at(3).get_to(coverage.collectives);
  json.at(4).get_to(coverage.group_sizes);
  return coverage;
}

Json to_json(const OpCheck::Counts& ops) {
  return {ops.ops, ops.moves, ops.compared_ops, ops.compared_moves, ops.without_bound, bits(ops.over_bound)};
}

void add_ops(OpCheck::Counts& sum, const Json& json) {
  int64_t* const counts[] = {&sum.ops, &sum.moves, &sum.compared_ops, &sum.compared_moves, &sum.without_bound};
  for (size_t i = 0; i < std::size(counts); ++i) *counts[i] += json.at(i).get<int64_t>();
  raise(sum.over_bound, number(json.at(std::size(counts))));
}

Json to_json(const trainer::StepCheck& mine) {
  return {{"loss", bits(mine.comparison.loss)},
          {"gradient", bits(mine.comparison.gradient)},
          {"parameter", bits(mine.comparison.parameter)},
          {"differing_bits", mine.comparison.differing_bits},
          {"bytes", bits(mine.bytes)},
          {"run_over_bound", bits(mine.run_over_bound)},
          {"ops", mine.ops ? to_json(*mine.ops) : Json()}};
}

void add(trainer::StepCheck& check, const Json& theirs) {
  raise(check.comparison.loss, number(theirs.at("loss")));
  raise(check.comparison.gradient, number(theirs.at("gradient")));
  raise(check.comparison.parameter, number(theirs.at("parameter")));
  check.comparison.differing_bits += theirs.at("differing_bits").get<int64_t>();
  raise(check.bytes, number(theirs.at("bytes")));
  raise(check.run_over_bound, number(theirs.at("run_over_bound")));
  if (check.ops) add_ops(*check.ops, theirs.at("ops"));
}

/// What each other rank says.
std::vector<Json> of_others(const Mesh& mesh, const Json& mine) {
  const auto texts = trainer::texts_of_all_ranks(mesh, mine.dump());
  std::vector<Json> others;
  for (size_t rank = 0; rank < texts.size(); ++rank)
    if (rank != static_cast<size_t>(mesh.local_ranks()[0])) others.push_back(Json::parse(texts[rank]));
  return others;
}

}  // namespace

void join(trainer::StepCheck& check, const Mesh& mesh) {
  for (const auto& theirs : of_others(mesh, to_json(check))) add(check, theirs);
}

void join(Coverage& coverage, const Mesh& mesh) {
  for (const auto& theirs : of_others(mesh, to_json(coverage))) coverage.add(to_coverage(theirs));
}

}  // namespace lockstep::tool
