#include "trainer/identity/facts.h"

#include <algorithm>

namespace lockstep::trainer {

const std::string* find_fact(const Facts& facts, const std::string& name) {
  const auto found = std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == name; });
  return found == facts.end() ? nullptr : &found->second;
}

std::pair<std::string, std::string> fact_of(const Key& key, const Job& job) {
  const auto value = key.text(job);
  return {key.dotted(), value.empty() ? "not set" : value};
}

}  // namespace lockstep::trainer
