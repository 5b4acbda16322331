#pragma once
#include <map>
#include <string>

#include "core/error.h"
#include "trainer/identity/facts.h"
#include "trainer/launch/signed_store.h"

namespace lockstep::trainer {

/// The processes of a run were started with different facts. The same on every rank.
class Disagreement final : public BadInput {
 public:
  /// `values`: of the fact `name`, by rank; two differ at least.
  Disagreement(std::string name, std::map<int, std::string> values);

  const std::string& name() const { return name_; }
  const std::map<int, std::string>& values() const { return values_; }

 private:
  std::string name_;
  std::map<int, std::string> values_;
};

/// Returns when all processes have come with the same facts. Throws Disagreement on every rank, naming the first fact
/// in rank 0's order that differs. Each of the `world` processes calls it once; digests travel, facts only where those
/// differ.
void agree(const SignedStore& store, int rank, int world, const Facts& facts);

}  // namespace lockstep::trainer
