// What a file or folder of keys and certificates holds, as `shoal keys show` prints it. Never a
// secret.
#pragma once

#include <cstdint>
#include <filesystem>

namespace shoal::tools {

/// Prints on stdout; what cannot be read, and why a node's folder is not one to start a node with,
/// on stderr. False in these cases.
bool show_keys(const std::filesystem::path& path, std::int64_t utc_ns);

} // namespace shoal::tools
