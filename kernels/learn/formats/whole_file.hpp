// Files that are read or written as a whole. A program that opens a written file sees the old one
// or the new one, and never a part.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace shoal::learn {

/// The contents of the file at `path`. Each error begins with `what`, such as 'tokenizer'.
/// Errors: no file, no permission, a folder, or more than `at_most` bytes.
result<std::string> read_whole_file(const std::filesystem::path& path, std::uint64_t at_most,
                                    std::string_view what);

/// Writes `parts` one behind the other to a file beside `path`, and renames it.
/// Errors: the path and the system's reason. Nothing is left behind.
result<void> write_whole_file(const std::filesystem::path& path,
                              std::span<const std::span<const std::byte>> parts,
                              std::string_view what);
/// The same for one text.
result<void> write_whole_file(const std::filesystem::path& path, std::string_view text,
                              std::string_view what);

} // namespace shoal::learn
