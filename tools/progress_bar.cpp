#include "tools/progress_bar.hpp"

#include "tools/terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace shoal::tools {

namespace {

std::string words_of(const scenarios::sweep_progress& progress, double seconds) {
  const auto ended = progress.finished + progress.failed;
  auto words = fmt::format("{}/{} cells", ended, progress.cells);
  if (progress.failed > 0) words += fmt::format("  {} failed", progress.failed);
  // The estimate assumes that a remaining cell takes as long as one that ran now.
  if (progress.ran > 0 && ended < progress.cells)
    words += "  " + eta_text(seconds, static_cast<double>(progress.ran),
                             static_cast<double>(progress.cells - ended));
  return words;
}

} // namespace

std::string bar_text(double share, const std::string& words, std::size_t columns) {
  const std::size_t most = 40, around = 4; // width of the bar; columns for brackets and a gap
  if (words.size() > columns) return words.substr(0, columns);
  if (columns < words.size() + around + 8) return words;
  const auto width = std::min(most, columns - words.size() - around);
  const auto full =
      static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width) + 1e-9);
  return "[" + std::string(full, '#') + std::string(width - full, '.') + "]  " + words;
}

std::string progress_bar::text(const scenarios::sweep_progress& progress, double seconds,
                               std::size_t columns) {
  auto words = words_of(progress, seconds);
  if (words.size() > columns) return words.substr(0, columns);
  const auto running = fmt::format("  {} running", progress.running);
  if (progress.running > 0 && words.size() + running.size() <= columns) words += running;
  return bar_text(progress.cells == 0 ? 1
                                      : static_cast<double>(progress.finished + progress.failed) /
                                            static_cast<double>(progress.cells),
                  words, columns);
}

std::string progress_bar::coloured(std::string line) {
  const auto paint = [&line](std::size_t from, std::size_t to, const char* colour) {
    line.insert(to, "\x1b[0m");
    line.insert(from, colour);
  };
  if (const auto at = line.find(" failed"); at != std::string::npos && at > 0)
    paint(line.find_last_not_of("0123456789", at - 1) + 1, at + 7, "\x1b[31m");
  if (const auto end = line.find_last_of('#'); end != std::string::npos)
    paint(1, end + 1, "\x1b[32m");
  return line;
}

void progress_bar::show(const scenarios::sweep_progress& progress) {
  const auto now = std::chrono::steady_clock::now();
  const auto seconds = std::chrono::duration<double>(now - begun_).count();
  if (terminal_) {
    auto line = text(progress, seconds, terminal_columns(STDERR_FILENO).value_or(80) - 1);
    std::fprintf(stderr, "\r\x1b[K%s", (colour_ ? coloured(std::move(line)) : line).c_str());
    std::fflush(stderr);
    shown_ = true;
    return;
  }
  const auto ended = progress.finished + progress.failed;
  if (ended == last_ended_ || (ended < progress.cells && now - last_ < std::chrono::seconds(5)))
    return;
  last_ = now;
  last_ended_ = ended;
  std::fprintf(stderr, "%s\n", words_of(progress, seconds).c_str());
}

void progress_bar::clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

} // namespace shoal::tools
