// The file in which a node keeps its bans, beside its keys. Each line is one ban:
//   PROOF swarm HASH [since UTC [name NAME]]
// PROOF is the line of actors::to_line(). HASH names the swarm of the signatures.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/runner/ban_book.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

inline constexpr const char* bans_file = "bans.txt";

std::string to_line(const banned_member& what);
/// Reads one line, without its newline. Errors: not such a line.
result<banned_member> banned_from_line(std::string_view line);

struct read_bans {
  std::vector<banned_member> all;
  /// One sentence for each line that is damaged or proves nothing, with its number.
  std::vector<std::string> skipped;
};
/// Reads the file's text, and checks each proof again.
read_bans bans_from(std::string_view text);

/// Reads the file. A missing file has no bans. Errors: it cannot be read, or others may write it.
result<read_bans> load_bans(const std::filesystem::path& file);
/// Replaces the file as a whole. Errors: it cannot be written.
result<void> save_bans(const std::filesystem::path& file, const std::vector<banned_member>& all);

} // namespace shoal::scenarios
