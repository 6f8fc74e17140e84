#include "tools/keys_evidence.hpp"

#include "actors/trust/identity.hpp"
#include "actors/trust/proof.hpp"
#include "kernels/base/text_fields.hpp"
#include "netem/wire/key_files.hpp"
#include "scenarios/runner/bans_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace shoal::tools {

namespace {

using netem::wire::admission_record;

std::string key_of(const actors::proof& what) {
  const auto bytes = actors::bytes_of(actors::culprit_of(what));
  netem::wire::public_key_bytes key;
  std::memcpy(key.data(), bytes.data(), key.size());
  return hex_of(key);
}

result<convicted_member> read(std::string_view line,
                              const std::vector<admission_record>& admitted) {
  const auto ban = scenarios::banned_from_line(line);
  if (!ban) return failure{ban.error()};
  if (ban->what.swarm.empty())
    return failure{"the proof is of a simulation, whose signatures prove nothing"};
  if (!actors::holds(ban->what))
    return failure{"the proof does not hold: its key has not signed what it says"};
  convicted_member out{key_of(ban->what.what), {}, actors::meaning_of(ban->what.what)};
  const auto row = std::find_if(admitted.begin(), admitted.end(),
                                [&](const auto& one) { return one.key == out.key; });
  if (row != admitted.end()) {
    out.name = row->name;
    return out;
  }
  const bool old_rows = std::any_of(admitted.begin(), admitted.end(),
                                    [](const auto& one) { return one.key.empty(); });
  return failure{fmt::format(
      "the proof holds, and its key {}... was not admitted here{}", out.key.substr(0, 16),
      old_rows
          ? "; rows of admitted.csv that an earlier version wrote have no key: if you know the "
            "member, revoke it by its name"
          : "; it belongs to another moderator's swarm")};
}

} // namespace

result<std::vector<convicted_member>>
members_convicted_by(const std::string& file_or_line,
                     const std::vector<admission_record>& admitted) {
  std::error_code error;
  // A line is longer than a file name may be.
  const bool is_file = std::filesystem::is_regular_file(file_or_line, error);
  std::string text = file_or_line;
  if (is_file) {
    auto content = netem::wire::read_text(file_or_line);
    if (!content) return failure{content.error()};
    text = *std::move(content);
  } else if (file_or_line.find(' ') == std::string::npos) {
    return failure{fmt::format("there is no file '{}', and it is no proof", file_or_line)};
  }
  std::vector<convicted_member> out;
  std::string_view rest = text;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.empty()) continue;
    auto one = read(line, admitted);
    if (!one)
      return failure{is_file ? fmt::format("'{}', line {}: {}", file_or_line, number, one.error())
                             : one.error()};
    if (std::none_of(out.begin(), out.end(), [&](const auto& x) { return x.key == one->key; }))
      out.push_back(*std::move(one));
  }
  if (out.empty()) return failure{fmt::format("there is no proof in '{}'", file_or_line)};
  return out;
}

} // namespace shoal::tools
