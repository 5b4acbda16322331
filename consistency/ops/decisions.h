#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "runtime/context/observer.h"

namespace lockstep {

/// What a run decides by its values: whole numbers that ops make of floating ones, such as the order of scores. Where
/// two scores are as good as equal, roundings decide, and what follows is another function of the model.
class Decisions final : public Observer {
 public:
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;

  /// The first op that both have, and that decided otherwise there; empty: none.
  std::string first_other(const Decisions& other) const;

 private:
  std::map<std::string, at::Tensor> values_;  ///< whole, by OpId::text()
};

}  // namespace lockstep
