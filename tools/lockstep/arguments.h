#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/job/job_file.h"
#include "trainer/job/job_setting.h"

/// The command line as data. Only arguments.cpp knows how it is parsed.
namespace lockstep::tool {

/// What every command takes.
struct Output {
  std::string json;    ///< file for the machine-readable result; empty: none
  bool quiet = false;  ///< results and errors only
};

struct JobArguments {
  std::string file;
  std::vector<trainer::Setting> overrides;
  std::vector<std::string> plugins;  ///< files
};

struct TrainOptions {
  JobArguments job;
  Output output;
  bool verify = false;
  std::string html;    ///< page of what verification says; empty: none
  std::string record;  ///< folder; empty: as the job says
  bool dry_run = false;
  bool print_job = false;
  std::vector<trainer::Unhonoured> unhonoured = {};  ///< of the job, once it is read
};

struct VerifyOptions {
  JobArguments job;
  Output output;
  std::string html;    ///< page to write; empty: none
  std::string meshes;  ///< as written; empty: the job's
  /// Of shapes that are compared instead of the job's; none: the job's.
  std::vector<uint64_t> odd_shapes;
  std::vector<int64_t> losses;  ///< steps whose losses are printed
  bool bitwise = false;
};

struct RulesOptions {
  bool missing = false;             ///< list the overloads without a rule, and why
  std::optional<std::string> page;  ///< write the table there as Markdown
  Output output;
};

struct BenchOptions {
  std::string name;                 ///< "dispatch", "numerics", "step", ...
  std::optional<std::string> rows;  ///< shell wildcards, separated by commas; none: the bench's own choice
  std::optional<double> seconds;    ///< for each row; none: the bench's own
  std::string device = "cpu";       ///< of peers
  bool profile = false;             ///< of step
  std::string hardware;             ///< of forecast: what is fitted is written there; empty: nowhere
  std::optional<int64_t> kills;     ///< of month; none: 233
  std::string instructions;         ///< of Lockstep and LibTorch; empty: whatever the machine and the environment allow
  Output output;
};

struct MutateOptions {
  std::string of_class;  ///< "M4"; empty: all
  uint64_t seed = 1;
  size_t each = 48;               ///< mutants of each class
  std::optional<double> seconds;  ///< no mutant begins later
  std::string markdown;           ///< file for the page; empty: none
  Output output;
};

struct FuzzOptions {
  std::string kind;               ///< "ops", "programs", "layouts" or "steps"
  std::optional<double> seconds;  ///< none, and no cases: 60
  std::optional<int64_t> cases;   ///< instead of seconds
  std::optional<uint64_t> seed;   ///< none: another each time
  std::string op;                 ///< a row, or a check of one or all ("mm/gradients", "/gradients"); empty: all
  bool first_only = false;        ///< stop at the first failure
  std::string one_case;           ///< name, file or folder; empty: a search
  std::string record;             ///< file for what was compared of each row; empty: none
  std::optional<int> jobs;        ///< none: one for each core
  std::string failures = "fuzz-failures";  ///< folder
  Output output;
};

struct ShrinkOptions {
  std::string case_file;  ///< that verify wrote
  std::string smallest;   ///< file to write; empty: beside it, "case-1.smallest.h5"
  double seconds = 60;
  Output output;
};

struct LaunchOptions {
  int64_t processes = 0;
  double grace_seconds = 4;          ///< after the first failure, for the others to end by themselves
  std::optional<int64_t> restarts;   ///< after a loss; none: it ends the launch
  std::optional<int64_t> min_ranks;  ///< to go on with; none: all
  std::optional<double> back_after;  ///< seconds until the slot of a lost rank is used again; none: at once
  std::string json;                  ///< of the command; empty: as the command says
  std::vector<std::string> command;  ///< of lockstep: "train", "job.toml", ...
};

struct ReplayOptions {
  std::string folder;                   ///< or case_file
  std::string case_file;                ///< an op that verify wrote
  std::optional<int64_t> rank, step;    ///< no step: the last one recorded
  std::string until;                    ///< an op, or a part of its id; empty: the whole step
  std::string break_at;                 ///< the same, and its tensors are written
  std::string dump = "lockstep-break";  ///< folder for them
  int64_t repeat = 1;
  std::vector<trainer::Setting> changes;  ///< of the recorded job
  std::string against;                    ///< "reference", or empty
  Output output;
};

struct TraceOptions {
  std::string action;  ///< "ls", "dump", "diff" or "timeline"
  std::string folder, other;
  std::optional<int64_t> rank, step;  ///< none: all of them
  std::string html, chrome;           ///< files to write; empty: none
  Output output;
};

struct ReportOptions {
  std::vector<std::string> folders;  ///< outputs of runs
  std::string html;                  ///< page to write; empty: report.html in the first folder
  Output output;
};

struct ScheduleOptions {
  std::string name;                                             ///< of a pipeline schedule, or "all"
  std::optional<int64_t> ranks, stages_per_rank, microbatches;  ///< of a file: as it says
  std::string file;                                             ///< instead of a name
  std::string times;                                            ///< as written; empty: the usual ones
  int64_t columns = 120;
  std::string csv, html;  ///< files to write; empty: none
  Output output;
};

struct PlanOptions {
  std::optional<int64_t> ranks;  ///< of all meshes; none: of `mesh`
  std::string mesh, model, hardware = "h100", dtype = "bfloat16";
  int64_t batch = 1024, seq_len = 8192, rows = 10;
  std::optional<int64_t> local_batch, stages_per_rank;
  std::string recompute;  ///< empty: whatever is fastest
  Output output;
};

struct DoctorOptions {
  Output output;
};

struct CheckpointOptions {
  std::string folder;
  Output output;
};

/// `lockstep checkpoint import`, `export`, `diff` and `reshard`.
struct WeightsOptions {
  std::string action, from, to;
  bool averages = false;
  std::string dtype = "float32", job;
  int64_t length = 0;  ///< 0: the job's
  int64_t chunks = 1;
  Output output;
};

struct GenerateCommand {
  std::string folder, prompt;
  std::vector<int64_t> tokens;  ///< instead of a prompt
  bool bytes = false, uncached = false, int8 = false;
  int64_t count = 64, samples = 1, seed = 0;
  double temperature = 0, top_p = 1;
  std::string mesh = "tp=1";
  Output output;
};

struct DataOptions {
  std::string action;               ///< "prepare", "adopt" or "inspect"
  std::vector<std::string> inputs;  ///< of prepare: files, folders, globs; of adopt: a file of tokens
  std::string tokenizer;            ///< "bytes", or a file
  std::string field = "text";
  std::string begin_of_document, end_of_document;  ///< a token or an id; empty: none
  std::string pattern;                             ///< of tiktoken's ranks; empty: not said
  std::string chat;        ///< of prepare: the template of conversations; empty: documents are texts
  int64_t longest = 0;     ///< conversations of more tokens are left out; 0: none
  std::string dtype;       ///< of adopt; empty: as the file is
  int64_t vocabulary = 0;  ///< of adopt
  std::string file;        ///< to write, or to look into
  Output output;
};

/// Text to print on stdout instead of doing something: --help, --version.
struct PrintText {
  std::string text;
};

using Command =
    std::variant<PrintText, TrainOptions, VerifyOptions, RulesOptions, BenchOptions, MutateOptions, FuzzOptions,
                 ShrinkOptions, DoctorOptions, CheckpointOptions, WeightsOptions, LaunchOptions, ReplayOptions,
                 TraceOptions, ReportOptions, DataOptions, GenerateCommand, ScheduleOptions, PlanOptions>;

/// BadInput, one line, for anything that cannot be understood.
Command parse_arguments(int count, const char* const* arguments);

}  // namespace lockstep::tool
