#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep::kernels {

/// Memory of factors that several products of this thread have in common, as the weights of ranks that one process
/// simulates: while it lives, the first product that packs a part of such a factor keeps it, and the others read it.
/// The same panels, so the same bits. Of scopes in one another the inner one counts.
class SharedFactors {
 public:
  using Bytes = std::pair<const std::byte*, const std::byte*>;  ///< begin, end

  /// REQUIRES: nothing in these ranges is written or freed while it lives.
  explicit SharedFactors(std::vector<Bytes> ranges);
  ~SharedFactors();
  SharedFactors(const SharedFactors&) = delete;
  SharedFactors& operator=(const SharedFactors&) = delete;

  /// The scope of this thread, if a factor that begins there is in its memory; else null.
  static SharedFactors* of(const void* data);

  /// All that panels follow from.
  struct Part {
    const void* data;
    int64_t row_stride, sample_stride, element_stride, sample_length;
    int64_t first_row, rows, positions;
    const void* tiles;
    bool operator==(const Part&) const = default;
  };
  struct Panels {
    void* memory;  ///< 64-byte aligned; null: no room is left, pack it elsewhere
    bool are_packed;
  };
  /// Where the panels of this part lie; the first who asks has to pack them.
  Panels panels_of(const Part& part, int64_t bytes);

 private:
  std::vector<Bytes> ranges_;
  std::vector<std::pair<Part, void*>> packed_;
  int64_t used_ = 0;
  SharedFactors* outer_;
};

}  // namespace lockstep::kernels
