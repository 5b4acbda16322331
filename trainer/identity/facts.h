#pragma once
#include <string>
#include <utility>
#include <vector>

#include "trainer/job/job_keys.h"

namespace lockstep::trainer {

/// What is true of a run, by name: keys of its job, its data, its build. The order is that of the names' importance to
/// whoever reads the first difference, and part of every digest of them.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The value of that name; null if the facts do not know it.
const std::string* find_fact(const Facts& facts, const std::string& name);

/// A key of the job and its value: TOML, or "not set".
std::pair<std::string, std::string> fact_of(const Key& key, const Job& job);

}  // namespace lockstep::trainer
