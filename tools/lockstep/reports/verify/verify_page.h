#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What `--html` shows: verification as plain data, apart from where it comes from (page_facts.h). All texts may be
/// anybody's. Differences are relative; not finite where a value is not.
namespace lockstep::tool {

/// One step beside one device, in the worst value of each kind.
struct PageStep {
  int64_t step = 0;
  double loss = 0, gradient = 0, parameter = 0;
  int64_t differing_bits = 0;  ///< where bits are compared

  double worst() const;
};

/// What a rank sends in a step by one kind of collective on one axis.
struct PageTraffic {
  std::string collective, axis;
  int64_t count = 0;
  double bytes = 0;
  std::optional<double> native_bytes;  ///< under native numerics, where the job's are canonical
};

/// What differs after the step in one module.
struct PageModule {
  std::string name = {};  ///< "layers.0.attention"; of what belongs to no module its own: "loss"
  double gradient = 0, parameter = 0;
  int64_t wrong = 0, elements = 0;
};

/// Texts as Blame (consistency/blame.h) has them; those that are empty are left out.
struct PageFinding {
  int64_t step = 0;
  std::string kind = {}, op = {}, id = {}, module = {}, rule = {}, layouts = {}, collective = {}, axis = {}, group = {},
              ranks = {};
  std::string difference = {}, worst = {}, pattern = {}, before = {}, limits = {};
  bool transient = false;
  std::string next = {};                 ///< the command to go on with
  std::string report = {};               ///< what the terminal says
  std::vector<PageModule> modules = {};  ///< in the order of the computation
};

struct PageMesh {
  std::string mesh = {};
  bool agrees = true;
  std::vector<PageStep> steps = {};
  double bytes = 0;                        ///< that a rank sends in a step
  double ratio = 0;                        ///< time of the last step over one device's
  double least_state = 0, most_state = 0;  ///< bytes of parameters and optimizer state on a rank; 0: not known
  double resident = 0;                     ///< bytes of the process afterwards; 0: not known
  std::vector<PageTraffic> traffic = {};
  std::vector<std::string> gathered = {};  ///< why an operand could not stay where it lay
  std::vector<PageFinding> findings = {};

  PageStep worst() const;  ///< of all steps, the last one's number, bits added up
};

struct VerifyPage {
  std::string job, model, batch, numerics, machine, build, date, command;
  double tolerance = 0;  ///< 0: bits are compared
  size_t planned = 0;    ///< meshes
  std::vector<PageMesh> meshes;
  bool finished = false;
  std::string ended_by;  ///< what ended it before its end

  bool compares_bits() const { return tolerance <= 0; }
};

/// The page: one file without scripts, which is well-formed XML, too.
std::string verify_page(const VerifyPage& page);

}  // namespace lockstep::tool
