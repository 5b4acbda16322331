#pragma once
#include <utility>

#include "trainer/checkpoint/checkpoint_index.h"

namespace lockstep::trainer {

/// A run as indexes and reports show it. `Json` is nlohmann's, with its keys sorted or as they are written here.
template <class Json>
Json json_of(const RunOrigin& origin) {
  auto parents = Json::array();
  for (const auto& [identity, step] : origin.parents) parents.push_back(Json{{"identity", identity}, {"step", step}});
  return Json{{"identity", origin.identity}, {"data", origin.data}, {"parents", std::move(parents)}};
}

}  // namespace lockstep::trainer
