#pragma once
#include <nlohmann/json_fwd.hpp>

#include "fuzz/search/search.h"

namespace lockstep::tool {

/// A failure: what, in which call, and what reruns it. `file`: where its case was written; empty: nowhere.
std::string failure_text(const std::string& kind, const fuzz::FoundFailure& failure, const std::string& file);

/// How many cases of what were tried, and how fast.
std::string search_text(const std::string& kind, uint64_t seed, int jobs, const fuzz::SearchResult& result);

nlohmann::ordered_json search_json(const std::string& kind, uint64_t seed, int jobs, const fuzz::SearchResult& result);

}  // namespace lockstep::tool
