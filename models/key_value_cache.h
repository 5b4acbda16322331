#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace lockstep::models {

/// Keys and values of the tokens that a model has read, so that those that follow are read alone. Whoever runs the
/// model owns it (Hooks::cache()) and says after each run how many tokens it has.
///
/// A token's logits do not depend on which of the tokens before it came from here: attention takes the keys of all in
/// one order, from the first (docs/numerics.md), and every other op reads a position by itself.
class KeyValueCache {
 public:
  /// Tokens that were read before those that run now.
  int64_t length() const { return length_; }
  void set_length(int64_t length) { length_ = length; }

  struct Entry {
    at::Tensor key, value;  ///< [batch, heads, length, size]
  };
  /// Puts the keys and values of the tokens that run behind those of the layer at `path`; all of them.
  const Entry& append(const std::string& path, const at::Tensor& key, const at::Tensor& value);

 private:
  int64_t length_ = 0;
  std::map<std::string, Entry> layers_;
};

/// Of what runs; null: nothing was read before, and nothing is kept.
KeyValueCache* current_cache();

/// How many tokens were read before those that run.
int64_t first_position();

}  // namespace lockstep::models
