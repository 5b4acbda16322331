#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <thread>
#include <utility>
#include <vector>

/// Timing that survives a busy machine: two functions are measured in turns, and only ratios within a turn are
/// compared.
namespace lockstep::bench {

struct PairedOptions {
  int pairs = 31;
  double seconds = 0.005;  ///< one measurement repeats its function for at least this long
  /// No new pair after this long, once there are the five that a confidence bound needs.
  double budget = INFINITY;
  /// Measures what this thread computes, without what others do in between: for functions of one thread.
  bool own_time = false;
  double pause = 0;  ///< seconds before each measurement: threads of the other that still look for work go to sleep
};

struct PairedTiming {
  double ours = 0, peer = 0;  ///< median seconds of one call
  double ratio = 0;           ///< median of ours / peer
  double upper = 0;           ///< 95 % upper confidence bound of that median (infinity with fewer than 5 pairs)
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// The least order statistic that lies at or above the true median with 95 % confidence, whatever the distribution: the
/// k-th of n values, where a fair coin thrown n times shows fewer than k heads with probability >= 0.95.
inline double median_upper_bound(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double probability = std::pow(0.5, n), below = 0;  // of exactly k heads; of fewer than k + 1
  for (std::size_t k = 0; k < values.size(); ++k) {
    below += probability;
    if (below >= 0.95) return values[k];
    probability *= (n - static_cast<double>(k)) / (static_cast<double>(k) + 1);
  }
  return INFINITY;
}

namespace detail {

inline double now(const PairedOptions& options) {
  timespec time{};
  clock_gettime(options.own_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Function>
double seconds_of(Function& function, int repetitions, const PairedOptions& options) {
  std::this_thread::sleep_for(std::chrono::duration<double>(options.pause));
  const double start = now(options);
  for (int i = 0; i < repetitions; ++i) function();
  return (now(options) - start) / repetitions;
}

template <class Function>
int repetitions_for(Function& function, const PairedOptions& options) {
  // Plans are made, memory is touched: what this takes says nothing of later calls.
  for (double spent = 0; spent < options.seconds;) spent += seconds_of(function, 1, options);
  int repetitions = 1;
  while (seconds_of(function, repetitions, options) * repetitions < options.seconds && repetitions < 1 << 24)
    repetitions *= 2;
  return repetitions;
}

}  // namespace detail

/// Measures `ours` and `peer` in alternation; which one goes first changes with every pair. Calls both for a while
/// before.
template <class Ours, class Peer>
PairedTiming time_in_pairs(Ours&& ours, Peer&& peer, const PairedOptions& options = {}) {
  const int repeat_ours = detail::repetitions_for(ours, options);
  const int repeat_peer = detail::repetitions_for(peer, options);
  std::vector<double> our_times, peer_times, ratios;
  double spent = 0;
  for (int pair = 0; pair < options.pairs && (pair < 5 || spent < options.budget); ++pair) {
    if (pair % 2 == 0) our_times.push_back(detail::seconds_of(ours, repeat_ours, options));
    peer_times.push_back(detail::seconds_of(peer, repeat_peer, options));
    if (pair % 2 == 1) our_times.push_back(detail::seconds_of(ours, repeat_ours, options));
    ratios.push_back(our_times.back() / peer_times.back());
    spent += our_times.back() * repeat_ours + peer_times.back() * repeat_peer;
  }
  return {median(our_times), median(peer_times), median(ratios), median_upper_bound(ratios)};
}

}  // namespace lockstep::bench
