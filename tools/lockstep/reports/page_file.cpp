#include "tools/lockstep/reports/page_file.h"

#include <exception>

#include "core/files/atomic_file.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

constexpr std::chrono::seconds kAWhile{10};

}  // namespace

void PageFile::try_to_write() {
  try {
    write_file_atomically(path_, verify_page(page));
  } catch (const std::exception& error) {
    if (!has_failed_) print_err("lockstep: {}\n", error.what());
    has_failed_ = true;
  }
}

void PageFile::begin() {
  if (is_wanted() && can_be_replaced(path_)) write_file_atomically(path_, verify_page(page));
}

void PageFile::update() {
  if (!is_wanted() || !can_be_replaced(path_)) return;
  written_ = std::chrono::steady_clock::now();
  try_to_write();
}

void PageFile::update_now_and_then() {
  if (std::chrono::steady_clock::now() - written_ >= kAWhile) update();
}

void PageFile::finish() {
  if (!is_wanted()) return;
  page.finished = page.ended_by.empty();
  write_file_atomically(path_, verify_page(page));
}

void PageFile::end_by(const std::string& reason) {
  page.ended_by = reason;
  if (is_wanted()) try_to_write();
}

}  // namespace lockstep::tool
