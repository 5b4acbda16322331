#pragma once
#include <map>

#include "fuzz/programs/program_text.h"
#include "runtime/tensor/mesh.h"

namespace lockstep::fuzz {

/// The values of a program that runs, wherever its tensors live.
class ProgramRun {
 public:
  /// `mesh`: what redistributions are on; null on one device and on one rank, where they do nothing.
  ProgramRun(std::vector<at::Tensor> values, const Mesh* mesh) : values_(std::move(values)), mesh_(mesh) {}

  void run(const Instruction& instruction, size_t number);

  const std::vector<at::Tensor>& values() const { return values_; }
  /// Takes the values of the last instruction away.
  void forget(size_t count) { values_.resize(count); }

 private:
  at::Tensor result_of(const Instruction& instruction) const;
  void write(const Instruction& instruction);

  std::vector<at::Tensor> values_;
  const Mesh* mesh_;
};

/// What a run gave, as whole plain tensors.
struct ProgramOutcome {
  std::vector<at::Tensor> values;     ///< of all microbatches
  std::vector<at::Tensor> gradients;  ///< of the parameters; undefined where there is none
  std::string error;                  ///< instead
};

/// On one device, without a mesh: for programs that do not draw.
ProgramOutcome on_one_device(const Program& program);
/// On a mesh of one rank.
ProgramOutcome on_one_rank(const Program& program);
/// As it says, as each group of ranks sees it.
std::vector<ProgramOutcome> on_the_mesh(const Program& program, std::shared_ptr<const RuleSet> rules = {});

/// Property: one device's values and gradients, bit for bit where the program is canonical. Counts in
/// compared_cases()["programs"]. `rules`: the mesh's.
void a_program_gives_one_devices_gradients(bool canonical, std::shared_ptr<const RuleSet> rules = {});

}  // namespace lockstep::fuzz
