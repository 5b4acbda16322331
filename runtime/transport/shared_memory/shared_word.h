#pragma once
#include <atomic>

namespace lockstep {

/// A word that two processes see: read and written whole, in one order for both.
template <class T>
T load(T& word) {
  static_assert(std::atomic_ref<T>::is_always_lock_free, "a lock would be this process's own");
  return std::atomic_ref(word).load();
}

template <class T>
void store(T& word, T value) {
  std::atomic_ref(word).store(value);
}

}  // namespace lockstep
