#include "trainer/launch/agreement.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/digest/digest.h"

namespace lockstep::trainer {
namespace {

using nlohmann::json;

constexpr const char* kVerdict = "agreement/verdict";

std::string facts_key(int rank) { return "agreement/facts/" + std::to_string(rank); }
std::string seen_key(int rank) { return "agreement/seen/" + std::to_string(rank); }
std::string digest_key(int rank) { return "agreement/digest/" + std::to_string(rank); }

std::string value_in(const Facts& facts, const std::string& name) {
  const auto* value = find_fact(facts, name);
  return value ? *value : "unknown";
}

/// The rank that differs from rank 0, of `values`.
int other_rank(const std::map<int, std::string>& values) {
  for (const auto& [rank, value] : values)
    if (value != values.begin()->second) return rank;
  fail<InternalError>("all ranks agree");
}

std::string text_of(const std::string& name, const std::map<int, std::string>& values) {
  const auto other = other_rank(values);
  return fmt::format(
      "the processes were not started alike: {} is {} on rank {}, {} on rank {}. Give all the same job, build, data "
      "and "
      "checkpoints.",
      name, values.begin()->second, values.begin()->first, values.at(other), other);
}

/// The facts of every rank, each set of them read once.
std::map<int, Facts> facts_of_all(const SignedStore& store, const std::map<int, std::string>& digests) {
  std::map<std::string, Facts> read;
  std::map<int, Facts> all;
  for (const auto& [rank, digest] : digests) {
    if (!read.contains(digest)) read[digest] = json::parse(store.get(facts_key(rank))).get<Facts>();
    all[rank] = read.at(digest);
  }
  return all;
}

std::optional<Disagreement> first_difference(const std::map<int, Facts>& all) {
  std::vector<std::string> names;
  for (const auto& [rank, facts] : all)
    for (const auto& [name, value] : facts)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  for (const auto& name : names) {
    std::map<int, std::string> values;
    for (const auto& [rank, facts] : all) values[rank] = value_in(facts, name);
    const auto differs = [&](const auto& value) { return value.second != values.begin()->second; };
    if (std::any_of(values.begin(), values.end(), differs)) return Disagreement(name, std::move(values));
  }
  return std::nullopt;
}

/// Rank 0 compares for all: what the others read is one text.
std::optional<Disagreement> compared(const SignedStore& store, int world) {
  std::map<int, std::string> digests;
  for (int rank = 0; rank < world; ++rank) digests[rank] = store.get(digest_key(rank));
  const auto differs = [&](const auto& digest) { return digest.second != digests.at(0); };
  if (std::none_of(digests.begin(), digests.end(), differs)) return std::nullopt;
  return first_difference(facts_of_all(store, digests));
}

/// Rank 0 may serve the store: it stays until the others have read why the run ends. Who is gone is not waited for
/// long.
void wait_for_readers(const SignedStore& store, int world) {
  for (int rank = 1; rank < world; ++rank) try {
      store.get(seen_key(rank), std::chrono::seconds(2));
    } catch (const std::exception&) {
      return;
    }
}

}  // namespace

Disagreement::Disagreement(std::string name, std::map<int, std::string> values)
    : BadInput(text_of(name, values)), name_(std::move(name)), values_(std::move(values)) {}

void agree(const SignedStore& store, int rank, int world, const Facts& facts) {
  const auto text = json(facts).dump();
  store.set(facts_key(rank), text);
  store.set(digest_key(rank), digest(text).text());
  if (rank == 0) {
    const auto found = compared(store, world);
    store.set(kVerdict, found ? json{{"name", found->name()}, {"values", found->values()}}.dump() : "{}");
    if (!found) return;
    wait_for_readers(store, world);
    throw Disagreement(*found);
  }
  const auto verdict = json::parse(store.get(kVerdict));
  if (verdict.empty()) return;
  store.set(seen_key(rank), "");
  throw Disagreement(verdict.at("name"), verdict.at("values").get<std::map<int, std::string>>());
}

}  // namespace lockstep::trainer
