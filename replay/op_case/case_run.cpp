#include "replay/op_case/case_run.h"

#include <ATen/Parallel.h>

#include "core/error.h"
#include "replay/op_case/blame_json.h"
#include "replay/op_case/case_trial.h"
#include "replay/sandbox/reader_process.h"

namespace lockstep::replay {
namespace {

using Json = nlohmann::json;

/// Texts come from the case and from LibTorch: what is no UTF-8 in them is replaced.
std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// In the child.
std::string answer_of(const OpCase& one, const std::shared_ptr<const RuleSet>& rules) {
  try {
    const auto blame = try_case(one, rules);
    return dumped(blame ? Json(*blame) : Json::object());
  } catch (const BadInput& error) {
    return dumped({{"refused", error.what()}});
  } catch (const std::exception& error) {  // of memory that is not there, or a check of ours
    const std::string what = error.what();
    fail<FileError>("cannot be run: {}", what.substr(0, what.find('\n')));
  }
}

std::optional<Blame> blame_of(const std::string& text) {
  try {
    const auto answer = Json::parse(text);
    if (answer.contains("refused")) fail<BadInput>("{}", answer.at("refused").get<std::string>());
    if (answer.empty()) return std::nullopt;
    return answer.get<Blame>();
  } catch (const nlohmann::json::exception& error) {
    fail<FileError>("cannot be run: the op's process gave another answer than it should: {}", error.what());
  }
}

/// A child has no threads but the one that forks: LibTorch must not wait for others.
class OneThread {
 public:
  OneThread() : before_(at::get_num_threads()) { set(1); }
  ~OneThread() { set(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  static void set(int count) {
    if (at::get_num_threads() != count) at::set_num_threads(count);
  }
  int before_;
};

}  // namespace

std::optional<Blame> run_case(const OpCase& one, std::shared_ptr<const RuleSet> rules) {
  size_t bytes = 0;
  for (const auto& tensor : one.tensors) bytes += tensor.bytes.size();
  const OneThread alone;
  ReaderProcess process([&] { return answer_of(one, rules); }, limits_for_op(bytes));
  return blame_of(process.answer());
}

}  // namespace lockstep::replay
