#pragma once
#include <string>
#include <utility>
#include <vector>

namespace lockstep::replay {

/// The folder of `replay --break`: FOLDER/op.h5, and a FOLDER/operand.NAME.npy or result.NUMBER.npy for each tensor. It
/// holds one break and nothing else.
class BreakFolder {
 public:
  /// A name in the folder, and what goes there.
  using File = std::pair<std::string, std::string>;

  /// Whether files of `name` are a break's.
  static bool is_name(const std::string& name);

  /// The folder need not be there. BadInput, which names what is in the way, if it is something else than a folder, or
  /// holds something else than a break: what somebody else put there is neither removed nor mixed with a break.
  explicit BreakFolder(std::string path);

  /// Puts a break there, instead of the one that is there, and gives the paths in their order. The new files are
  /// written under other names (AtomicFile) before an old one goes, and op.h5 changes between the old tensors' end and
  /// the new ones' begin: whatever ends this early, tensors beside op.h5 are of its break. FileError if it fails, and
  /// BadInput as above: the folder is looked at again. REQUIRES: names are a break's, op.h5 the first; nobody else
  /// writes there.
  std::vector<std::string> write(const std::vector<File>& files) const;

 private:
  /// Names of the break that is there, with what one that was cut off has left. BadInput as above.
  std::vector<std::string> names() const;

  void require_index(const std::vector<std::string>& names) const;

  std::string path_;
};

}  // namespace lockstep::replay
