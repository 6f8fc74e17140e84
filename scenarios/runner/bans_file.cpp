#include "scenarios/runner/bans_file.hpp"

#include "netem/wire/certificates.hpp"
#include "netem/wire/key_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>

namespace shoal::scenarios {

namespace {

constexpr std::string_view since_word = " since ", name_word = " name ";

/// Takes the text before `word` from the front of `line`. Empty if there is no such word.
std::optional<std::string_view> take_until(std::string_view& line, std::string_view word) {
  const auto at = line.find(word);
  if (at == std::string_view::npos) return {};
  const auto out = line.substr(0, at);
  line.remove_prefix(at + word.size());
  return out;
}

} // namespace

std::string to_line(const banned_member& what) {
  return fmt::format("{}{}{}{}", actors::to_line(what.what), since_word,
                     netem::wire::utc_text(what.since_utc_ns),
                     what.name.empty() ? std::string{} : fmt::format("{}{}", name_word, what.name));
}

result<banned_member> banned_from_line(std::string_view line) {
  const auto before_time = take_until(line, since_word);
  auto what = actors::proof_in_swarm_from(before_time.value_or(line));
  if (!what) return failure{what.error()};
  banned_member out{*std::move(what), 0, {}};
  if (!before_time) return out;
  const auto before_name = take_until(line, name_word);
  const auto utc = netem::wire::parse_utc(before_name.value_or(line));
  if (!utc) return failure{utc.error()};
  out.since_utc_ns = *utc;
  if (!before_name) return out;
  if (const auto fine = netem::wire::check_name(line); !fine) return failure{fine.error()};
  out.name = line;
  return out;
}

read_bans bans_from(std::string_view text) {
  read_bans out;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    auto read = banned_from_line(line);
    if (read && actors::holds(read->what))
      out.all.push_back(*std::move(read));
    else
      out.skipped.push_back(
          fmt::format("line {} is skipped: {}", number,
                      read ? std::string("its proof does not hold") : read.error()));
  }
  return out;
}

result<read_bans> load_bans(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return read_bans{};
  const auto text = netem::wire::read_trusted(file);
  if (!text) return failure{text.error()};
  return bans_from(*text);
}

result<void> save_bans(const std::filesystem::path& file, const std::vector<banned_member>& all) {
  std::string text;
  for (const auto& each : all) text += to_line(each) + "\n";
  return netem::wire::write_text(file, text);
}

} // namespace shoal::scenarios
