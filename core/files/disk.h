#pragma once
#include <cstddef>
#include <span>
#include <string>

/// What files that must survive a crash are made of. Both give 0, or -1 with errno.
namespace lockstep {

/// All bytes, also if the system takes them in parts.
int write_all(int descriptor, std::span<const std::byte> bytes);

/// Makes renamed and new names in `folder` durable.
int flush_folder(const std::string& folder);

}  // namespace lockstep
