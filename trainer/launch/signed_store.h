#pragma once
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace lockstep::trainer {

/// Texts that the processes of one run leave for each other in a c10d::Store, which others may reach, too: nothing in
/// it is trusted. Each text is signed, together with its key, with the job's token.
///
/// All calls end in time: c10d's own client waits without a limit for what answers nothing.
class SignedStore {
 public:
  using Store = c10::intrusive_ptr<c10d::Store>;

  /// What differs between the runs that share a store is in `prefix`. `waiting` begins the error of a call that takes
  /// longer than `timeout`: "rank 1 has waited at the store 127.0.0.1:29500".
  SignedStore(Store store, std::string token, std::string prefix, std::chrono::milliseconds timeout,
              std::string waiting);

  void set(const std::string& key, const std::string& text) const;
  /// Waits until somebody has set it, `most` if that is less than the store's timeout. Throws TransportError for what
  /// is not signed with this job's token, and when nothing comes in time.
  std::string get(const std::string& key, std::chrono::milliseconds most = std::chrono::milliseconds::max()) const;
  /// What somebody has set, by now; errors as get()'s.
  std::optional<std::string> find(const std::string& key) const;

  /// For a library that keeps texts of its own there, and trusts them.
  Store unsigned_part(const std::string& name) const;

 private:
  std::string signature(const std::string& key, const std::string& text) const;

  Store store_;
  std::string token_, prefix_, waiting_;
  std::chrono::milliseconds timeout_;
};

}  // namespace lockstep::trainer
