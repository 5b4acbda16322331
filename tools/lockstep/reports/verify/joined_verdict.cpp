#include "tools/lockstep/reports/verify/joined_verdict.h"

#include <algorithm>
#include <bit>

#include "trainer/launch/rank_texts.h"

namespace lockstep::tool {
namespace {

using Json = nlohmann::json;

/// JSON has no number that is not finite.
uint64_t bits(double number) { return std::bit_cast<uint64_t>(number); }
double number(const Json& bits) { return std::bit_cast<double>(bits.get<uint64_t>()); }

/// The larger; what is no number is larger than all.
void raise(double& to, double other) {
  if (!(other <= to)) to = other;
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

Json to_json(const MeshVerdict& mine) {
  return {{"loss", bits(mine.loss)},
          {"gradient", bits(mine.gradient)},
          {"parameter", bits(mine.parameter)},
          {"bytes", bits(mine.bytes)},
          {"run_over_bound", bits(mine.run_over_bound)},
          {"differing_bits", mine.differing_bits},
          {"ops", mine.ops ? to_json(*mine.ops) : Json()},
          {"coverage", to_json(mine.coverage)}};
}

void add(MeshVerdict& verdict, const Json& theirs) {
  raise(verdict.loss, number(theirs.at("loss")));
  raise(verdict.gradient, number(theirs.at("gradient")));
  raise(verdict.parameter, number(theirs.at("parameter")));
  raise(verdict.bytes, number(theirs.at("bytes")));
  raise(verdict.run_over_bound, number(theirs.at("run_over_bound")));
  verdict.differing_bits += theirs.at("differing_bits").get<int64_t>();
  if (verdict.ops) add_ops(*verdict.ops, theirs.at("ops"));
  verdict.coverage.add(to_coverage(theirs.at("coverage")));
}

}  // namespace

void join(MeshVerdict& verdict, const Mesh& mesh) {
  const auto texts = trainer::texts_of_all_ranks(mesh, to_json(verdict).dump());
  const auto mine = static_cast<size_t>(mesh.local_ranks()[0]);
  for (size_t rank = 0; rank < texts.size(); ++rank)
    if (rank != mine) add(verdict, Json::parse(texts[rank]));
}

}  // namespace lockstep::tool
