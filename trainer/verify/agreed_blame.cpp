#include "trainer/verify/agreed_blame.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "replay/op_case/blame_json.h"
#include "replay/op_case/case_parts.h"
#include "replay/op_case/move_case.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/launch/together.h"

namespace lockstep::trainer {

std::string agreed_difference(const Mesh& mesh, const Comparison& comparison) {
  std::optional<Found> mine;
  if (!comparison.agrees()) mine = Found{0, comparison.beyond[0].text()};
  const auto first = earliest(mesh, mine);
  if (!first) return {};
  return first->rank == 0 ? first->text
                          : fmt::format("{}, seen by rank {} and not by rank 0", first->text, first->rank);
}

std::optional<AgreedBlame> agreed_blame(const Mesh& mesh, const std::optional<Blame>& mine) {
  std::optional<Found> found;
  if (mine) found = Found{mine->position, nlohmann::json(*mine).dump()};
  const auto first = earliest(mesh, found);
  if (!first) return std::nullopt;
  const auto& ranks = mesh.local_ranks();
  const bool is_here = std::find(ranks.begin(), ranks.end(), first->rank) != ranks.end();
  return AgreedBlame{nlohmann::json::parse(first->text).get<Blame>(), is_here};
}

std::optional<replay::OpCase> joined_case(const Mesh& mesh, const AgreedBlame& agreed,
                                          std::optional<replay::OpCase> part) {
  if (static_cast<int>(mesh.local_count()) == mesh.rank_count()) return part;
  const auto texts = texts_of_all_ranks(mesh, part ? replay::text_of_tensors(*part) : "");
  for (const auto& text : texts)
    if (text.empty()) return std::nullopt;
  if (!agreed.is_here) return std::nullopt;
  for (const auto& text : texts) replay::add_tensors(*part, text);
  return part;
}

std::optional<replay::OpCase> case_of_move(const Mesh& mesh, const AgreedBlame& agreed,
                                           const std::optional<Blame>& mine, const std::optional<MovedValue>& moved) {
  std::optional<replay::OpCase> part;
  if (moved && mine && mine->position == agreed.blame.position)
    part = replay::case_of_move(*moved, agreed.blame.id, agreed.blame.text());
  return joined_case(mesh, agreed, std::move(part));
}

}  // namespace lockstep::trainer
