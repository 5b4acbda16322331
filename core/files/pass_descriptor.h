#pragma once
#include <span>

#include "core/files/file_descriptor.h"

namespace lockstep {

/// Sends a few bytes, which always fit into an empty socket buffer, and with them, on a Unix socket, a descriptor
/// (SCM_RIGHTS) unless it is none. Whether all went.
bool send_with(const FileDescriptor& socket, std::span<const std::byte> bytes, const FileDescriptor& passed);

/// Receives what has come, and keeps a descriptor that came with it; one that `passed` held is closed. As recv().
ssize_t receive_with(const FileDescriptor& socket, std::span<std::byte> bytes, FileDescriptor& passed);

}  // namespace lockstep
