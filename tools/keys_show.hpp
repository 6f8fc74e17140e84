// The output of `shoal keys show`: the contents of a file or folder of keys and certificates,
// without secrets.
#pragma once

#include <cstdint>
#include <filesystem>

namespace shoal::tools {

/// Prints on stdout. Prints unreadable files, and the reason why a folder cannot start a node, on
/// stderr. Returns false in these cases.
bool show_keys(const std::filesystem::path& path, std::int64_t utc_ns);

} // namespace shoal::tools
