#include "runtime/world.h"

#include <numeric>

#include "core/error.h"
#include "runtime/backend.h"
#include "runtime/exchanges_in_flight.h"
#include "runtime/observer.h"
#include "runtime/parameter_names.h"
#include "runtime/plan_cache.h"
#include "runtime/rule_set.h"
#include "runtime/sent_bytes.h"
#include "runtime/transport/transport.h"

namespace lockstep {
namespace {
thread_local const Mesh* current_mesh = nullptr;
}

World::World(Options options)
    : options_(std::move(options)),
      plans_(std::make_unique<PlanCache>()),
      observers_(std::make_unique<Observers>()),
      parameter_names_(std::make_unique<ParameterNames>()),
      moves_(std::make_unique<MoveCounts>()) {
  register_backend();
  auto& local = options_.local_ranks;
  if (local.empty()) {
    local.resize(static_cast<size_t>(options_.rank_count));
    std::iota(local.begin(), local.end(), 0);
  }
  LOCKSTEP_CHECK(options_.transport || options_.meta || static_cast<int>(local.size()) == options_.rank_count,
                 "a World without a transport holds all its ranks");
  if (options_.transport) in_flight_ = std::make_unique<ExchangesInFlight>(*options_.transport);
  if (!options_.rules) options_.rules = RuleSet::built_in(options_.numerics);
}

World::~World() = default;

bool World::overlaps() const { return options_.overlap && in_flight_ && !options_.meta && observers_->empty(); }

void World::advance_in_flight() {
  if (!in_flight_->empty()) in_flight_->advance();
}

void World::set_rules(std::shared_ptr<const RuleSet> rules) {
  options_.rules = std::move(rules);
  plans_->clear();
}

const Mesh& World::mesh(const std::vector<MeshAxis>& axes) {
  for (const auto& mesh : meshes_)
    if (&mesh->whole() == mesh.get() && mesh->axes() == axes) return *mesh;
  return *meshes_.emplace_back(std::make_unique<Mesh>(*this, axes));
}

const Mesh& World::mesh(std::string_view text) {
  const auto parsed = parse_mesh_text(text);
  const Mesh* mesh = &this->mesh(parsed.axes);
  for (const auto& [axis, coordinate] : parsed.at) mesh = &mesh->submesh(axis, coordinate);
  return *mesh;
}

const Mesh& World::submesh(const Mesh& whole, const std::vector<int64_t>& fixed) {
  for (const auto& mesh : meshes_)
    if (&mesh->whole() == &whole && mesh->fixed() == fixed) return *mesh;
  return *meshes_.emplace_back(std::make_unique<Mesh>(whole, fixed));
}

MeshScope::MeshScope(const Mesh& mesh) : previous_(std::exchange(current_mesh, &mesh)) {}
MeshScope::~MeshScope() { current_mesh = previous_; }

const Mesh& MeshScope::current() {
  if (!current_mesh) fail<BadInput>("a tensor was made on the mesh device outside of a MeshScope");
  return *current_mesh;
}

}  // namespace lockstep
