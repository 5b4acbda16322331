// A file that is in memory already is opened where it lies.
#include <gtest/gtest.h>

#include "core/digest/digest.h"
#include "replay/hdf5/image_hdf5.h"
#include "replay/store/recording_file.h"
#include "tests/support/recordings.h"

namespace lockstep::replay::hdf5 {
namespace {

/// Of an open file that the library keeps in memory.
const void* start_of(const Handle& file) {
  void** start = nullptr;
  const Handle access(H5Fget_access_plist(file.get()));
  EXPECT_GE(H5Fget_vfd_handle(file.get(), access.get(), reinterpret_cast<void**>(&start)), 0);
  return start != nullptr ? *start : nullptr;
}

TEST(Images, AreNotCopied) {
  const auto file = to_file(lockstep::testing::random_recording(1));
  const auto before = digest(file);
  const Session session;
  {
    const auto opened = open_image(file);
    ASSERT_GE(opened.get(), 0);
    EXPECT_EQ(start_of(opened), file.data());
    EXPECT_GT(H5Lexists(opened.get(), "/payload", H5P_DEFAULT), 0);
  }
  EXPECT_EQ(digest(file), before) << "nor written to, nor freed";
}

}  // namespace
}  // namespace lockstep::replay::hdf5
