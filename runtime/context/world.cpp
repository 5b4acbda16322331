#include "runtime/context/world.h"

#include <atomic>
#include <numeric>

#include "core/error.h"
#include "runtime/context/observer.h"
#include "runtime/context/parameter_names.h"

namespace lockstep {
namespace {

void (*register_backend)() = nullptr;

Ranks::Options ranks_of(const World::Options& options) {
  auto local = options.local_ranks;
  if (local.empty()) {
    local.resize(static_cast<size_t>(options.rank_count));
    std::iota(local.begin(), local.end(), 0);
  }
  return {options.rank_count, std::move(local), options.domain, options.meta ? c10::kMeta : options.device};
}

}  // namespace

World::World(Options options)
    : options_(std::move(options)),
      ranks_(*this, ranks_of(options_)),
      observers_(std::make_unique<Observers>()),
      parameter_names_(std::make_unique<ParameterNames>()) {
  LOCKSTEP_CHECK(register_backend, "nothing gives tensors on a mesh their ops; link Lockstep::runtime");
  register_backend();
  LOCKSTEP_CHECK(options_.transport || options_.meta || static_cast<int>(local_ranks().size()) == rank_count(),
                 "a World without a transport holds all its ranks");
}

World::~World() = default;

void World::on_construction(void (*function)()) { register_backend = function; }

bool World::overlaps() const { return options_.overlap && options_.transport && !options_.meta && observers_->empty(); }

size_t World::next_part_number() {
  static std::atomic<size_t> next = 0;
  return next++;
}

void* World::keep(size_t number, std::shared_ptr<void> part) {
  if (number >= parts_.size()) parts_.resize(number + 1);
  return (parts_[number] = std::move(part)).get();
}

}  // namespace lockstep
