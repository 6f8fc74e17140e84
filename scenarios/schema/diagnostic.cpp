#include "scenarios/schema/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace shoal::scenarios {
namespace {

/// Returns blanks as wide as the first `bytes` bytes of `line`. Tabs stay, and a UTF-8 sequence
/// becomes one blank.
std::string indent_like(std::string_view line, std::size_t bytes) {
  std::string out;
  for (char c : line.substr(0, std::min(bytes, line.size()))) {
    if (c == '\t')
      out += '\t';
    else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80)
      out += ' ';
  }
  return out;
}

/// Replaces control characters, which must not reach a terminal.
std::string printable(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += (byte < 0x20 && c != '\t') || byte == 0x7F ? '?' : c;
  }
  return out;
}

} // namespace

std::string render(const diagnostic& what, bool colour) {
  const char* bold = colour ? "\x1b[1m" : "";
  const char* plain = colour ? "\x1b[0m" : "";
  const char* severity_colour = !colour ? "" : what.warning ? "\x1b[1;35m" : "\x1b[1;31m";
  const char* mark_colour = colour ? "\x1b[1;32m" : "";
  const char* note_colour = colour ? "\x1b[1;36m" : "";

  std::string place = printable(what.file);
  if (what.line > 0) place += fmt::format(":{}:{}", what.line, what.column);
  std::string out = fmt::format("{}{}:{} {}{}:{} {}\n", bold, place, plain, severity_colour,
                                what.warning ? "warning" : "error", plain, printable(what.message));

  constexpr std::size_t widest = 160;
  if (what.line > 0 && !what.source_line.empty() && what.source_line.size() <= widest) {
    const auto before = static_cast<std::size_t>(std::max(what.column - 1, 0));
    const std::size_t room =
        what.source_line.size() > before ? what.source_line.size() - before : 1;
    const auto marked =
        std::clamp<std::size_t>(static_cast<std::size_t>(std::max(what.length, 1)), 1, room);
    out += fmt::format("{}\n{}{}^{}{}\n", printable(what.source_line),
                       indent_like(what.source_line, before), mark_colour,
                       std::string(marked - 1, '~'), plain);
  }
  for (const std::string& note : what.notes)
    out += fmt::format("{}note:{} {}\n", note_colour, plain, printable(note));
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

namespace {

/// Returns a bit set of the letters in `word`. Letters may share a bit.
std::uint64_t letters(std::string_view word) {
  std::uint64_t out = 0;
  for (const char c : word) out |= std::uint64_t{1} << (static_cast<unsigned char>(c) % 64);
  return out;
}

} // namespace

std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > 64) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  const auto ours = letters(word);
  for (const std::string& candidate : candidates) {
    const auto [shorter, longer] =
        std::minmax({word.size(), candidate.size()}); // by value, not by reference
    const std::size_t most = std::max<std::size_t>(1, longer / 3);
    // Each letter that only one of the two words has costs at least one change. This bound rules
    // out most candidates without an edit distance.
    const auto theirs = letters(candidate);
    const auto changes = std::max(std::popcount(ours & ~theirs), std::popcount(theirs & ~ours));
    if (longer - shorter > most || static_cast<std::size_t>(changes) > most) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance > most || distance >= longer) continue;
    if (!best || distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         std::string otherwise) {
  const auto meant = closest(word, candidates);
  return meant ? fmt::format("did you mean '{}'?", *meant) : std::move(otherwise);
}

std::vector<std::string> meant_notes(std::string_view word,
                                     std::span<const std::string> candidates) {
  if (auto question = did_you_mean(word, candidates); !question.empty())
    return {std::move(question)};
  return {};
}

} // namespace shoal::scenarios
