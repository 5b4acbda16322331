#include "runtime/world.h"

#include <numeric>

#include "core/error.h"
#include "runtime/backend.h"
#include "runtime/observer.h"
#include "runtime/plan_cache.h"
#include "runtime/rule_set.h"
#include "runtime/transport/transport.h"

namespace lockstep {
namespace {
thread_local const Mesh* current_mesh = nullptr;
}

World::World(Options options)
    : options_(std::move(options)), plans_(std::make_unique<PlanCache>()), observers_(std::make_unique<Observers>()) {
  register_backend();
  auto& local = options_.local_ranks;
  if (local.empty()) {
    local.resize(static_cast<size_t>(options_.rank_count));
    std::iota(local.begin(), local.end(), 0);
  }
  LOCKSTEP_CHECK(options_.transport || options_.meta || static_cast<int>(local.size()) == options_.rank_count,
                 "a World without a transport holds all its ranks");
  if (!options_.rules) options_.rules = RuleSet::built_in();
  local_index_.assign(static_cast<size_t>(options_.rank_count), -1);
  for (size_t i = 0; i < local.size(); ++i) local_index_[static_cast<size_t>(local[i])] = static_cast<int>(i);
}

World::~World() = default;

void World::set_rules(std::shared_ptr<const RuleSet> rules) {
  options_.rules = std::move(rules);
  plans_->clear();
}

const Mesh& World::mesh(const std::vector<MeshAxis>& axes) {
  for (const auto& mesh : meshes_)
    if (mesh->axes() == axes) return *mesh;
  auto mesh = std::make_unique<Mesh>(*this, axes);
  if (mesh->rank_count() != rank_count())
    fail<BadInput>("mesh {} needs {} ranks, there are {}", mesh->text(), mesh->rank_count(), rank_count());
  return *meshes_.emplace_back(std::move(mesh));
}

MeshScope::MeshScope(const Mesh& mesh) : previous_(std::exchange(current_mesh, &mesh)) {}
MeshScope::~MeshScope() { current_mesh = previous_; }

const Mesh& MeshScope::current() {
  if (!current_mesh) fail<BadInput>("a tensor was made on the mesh device outside of a MeshScope");
  return *current_mesh;
}

}  // namespace lockstep
