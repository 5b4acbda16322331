#include "trainer/launch/shared_folder.h"

#include <filesystem>
#include <optional>
#include <random>

#include "core/error.h"
#include "core/files/atomic_file.h"
#include "core/files/make_folders.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/launch/together.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;

/// A file that lives as long as this. No other process has looked its name up before: NFS remembers names that were
/// not there.
class Mark {
 public:
  explicit Mark(const std::string& folder)
      : name_(fmt::format(".shared-{:08x}{:08x}", std::random_device()(), std::random_device()())),
        path_(fs::path(folder) / name_) {
    make_folders(folder);
    write_file_atomically(path_.string(), "");
  }
  ~Mark() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  fs::path path_;
};

}  // namespace

void require_shared_folder(const std::string& folder, const Mesh& mesh) {
  const bool is_first = mesh.local_ranks()[0] == 0;
  std::optional<Mark> mark;
  together(mesh, [&] {
    if (is_first) mark.emplace(folder);
  });
  const auto name = texts_of_all_ranks(mesh, is_first ? mark->name() : "")[0];
  together(mesh, [&] {
    std::error_code ignored;
    if (!fs::exists(fs::path(folder) / name, ignored))
      fail<FileError>(
          "{}: is not on a disk that all hosts share: what rank 0 writes there is not seen here. Choose a "
          "job.dump_folder or checkpoint.folder that is.",
          folder);
  });
}

}  // namespace lockstep::trainer
