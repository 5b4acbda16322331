#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "runtime/context/observer.h"

namespace lockstep {

/// Every op's results by op id, gathered: what one run did, to be compared with another's.
class OpTrace final : public Observer {
 public:
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;

  /// By OpId::text(); results of in-place ops are the values after the op. Views are left out: they compute nothing.
  const std::map<std::string, std::vector<at::Tensor>>& results() const { return results_; }

 private:
  std::map<std::string, std::vector<at::Tensor>> results_;
};

/// The first op whose result differs from a reference's, in the order of the program.
struct Blame {
  std::string id;        ///< "step 1, microbatch 0, backward, layers.0.attention.qkv, linear #0"
  std::string op;        ///< "linear"
  std::string rule;      ///< family and dims of its row
  std::string layouts;   ///< "[tp=R], [tp=S(0)] -> [tp=S(2)]"
  std::string worst;     ///< index, both values, relative error, pattern
  int64_t position = 0;  ///< how many observed ops came before it
  std::string text() const;
};

/// The floating tensors that an op computed: its results, or what it wrote in place.
std::vector<at::Tensor> computed_results(const OpEvent& event, std::span<const c10::IValue> results);

/// Compares the floating results of an op, gathered, with `expected`, one device's: the first that differs, if any.
/// Results whose sizes differ are passed over.
std::optional<Blame> compare_op(const OpEvent& event, std::span<const c10::IValue> results,
                                const std::vector<at::Tensor>& expected, double tolerance);

/// Compares while a run goes on; remembers the first op that differs. Gathers every result, also after that: other
/// ranks may not have found one, and gather.
class BlameObserver final : public Observer {
 public:
  BlameObserver(const OpTrace& reference, double tolerance) : reference_(reference), tolerance_(tolerance) {}
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  const std::optional<Blame>& blame() const { return blame_; }

 private:
  const OpTrace& reference_;
  double tolerance_;
  int64_t position_ = 0;
  std::optional<Blame> blame_;
};

/// Remembers the first op that gave a NaN or an infinity from finite operands. Gathers as BlameObserver does.
class NonFiniteObserver final : public Observer {
 public:
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  /// The op's id, or empty.
  const std::string& first() const { return first_; }
  /// How many observed ops came before it.
  int64_t position() const { return position_; }

 private:
  std::string first_;
  int64_t position_ = 0;
};

}  // namespace lockstep
