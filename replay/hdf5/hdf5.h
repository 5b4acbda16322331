#pragma once
#include <hdf5.h>

#include <mutex>
#include <utility>

#include "core/error.h"

/// The C library in small handles. Nothing outside of replay/'s *_hdf5 files includes it.
namespace lockstep::replay::hdf5 {

/// Owns an id of any kind.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  hid_t get() const { return id_; }

 private:
  hid_t id_ = -1;
};

/// One thread at a time inside of the library, which is not thread-safe; nothing is printed. Held over fork() too, so
/// that a child finds the library in one piece.
class Session {
 public:
  Session() : lock_(mutex()) {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Session() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

/// A failure of the library in reading: the file is damaged.
template <class... Args>
void read_check(bool holds, fmt::format_string<Args...> what, Args&&... args) {
  if (!holds) fail<FileError>(what, std::forward<Args>(args)...);
}

}  // namespace lockstep::replay::hdf5
