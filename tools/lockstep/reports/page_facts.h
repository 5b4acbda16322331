#pragma once
#include <string>

#include "tools/lockstep/arguments.h"
#include "tools/lockstep/reports/verify/verify_page.h"
#include "trainer/dry_run/price_table.h"
#include "trainer/verify/step_verifier.h"

/// What pages of verification show, from where it comes.
namespace lockstep::tool {

/// What the job, this program and this machine say. `planned`: meshes.
VerifyPage page_of(const trainer::Job& job, size_t planned);

/// "lockstep verify jobs/demo.toml --training.steps 3", to be pasted into a shell.
std::string command_of(const char* name, const JobArguments& arguments);

/// A word of a shell's command line, in quotes if it needs them.
std::string shell_word(const std::string& text);

void add_check(PageMesh& mesh, int64_t step, const trainer::StepCheck& check);

/// What a rank sends, until a step that is checked tells what it sent. `canonical`: whether the prices are.
void add_prices(PageMesh& mesh, const trainer::PriceTable& prices, bool canonical);
/// What ranks hold.
void add_state(PageMesh& mesh, const trainer::DryRun& dry);
/// What this process holds now.
void note_memory(PageMesh& mesh);

/// `again`: the next command, until complete() knows of a better one.
PageFinding finding_on_page(int64_t step, const trainer::StepCheck& check, const std::string& again);

/// Adds what the terminal says to the mesh's last finding. Where there is none, what differs is known from the report
/// alone: copies of a value that have drifted apart.
void complete(PageMesh& mesh, const std::string& report);

}  // namespace lockstep::tool
