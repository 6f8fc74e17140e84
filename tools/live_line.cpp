#include "tools/live_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

#include <fmt/format.h>

#include "tools/terminal.hpp"

namespace shoal::tools {

namespace {

std::string clock_text(double seconds) {
  auto whole = static_cast<long long>(seconds);
  if (whole >= 86400) return fmt::format("{}d{:02}h", whole / 86400, whole % 86400 / 3600);
  if (whole >= 3600) return fmt::format("{}h{:02}m{:02}s", whole / 3600, whole % 3600 / 60, whole % 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

}  // namespace

std::string live_line::text(const scenarios::live_status& status) {
  const auto& p = status.progress;
  auto so_far = to_seconds(p.time);
  std::string out = clock_text(so_far);
  out += status.epochs_target > 0 ? fmt::format(" epoch {}/{}", p.epoch, status.epochs_target)
                                  : fmt::format(" epoch {}", p.epoch);
  auto done = status.epochs_target > 0 ? static_cast<double>(p.epoch) / static_cast<double>(status.epochs_target)
                                       : so_far / std::max(1e-9, to_seconds(status.stop_time));
  // What matters most stands first: a narrow terminal cuts the end.
  if (std::string_view(status.doing) == "baseline")
    out += "  now the same on one machine";
  else if (std::string_view(status.doing) == "ending")
    out += "  ending";
  else if (done > 0.01 && status.wall_seconds > 1)
    out += fmt::format(" ETA {}", clock_text(std::round(std::max(0.0, status.wall_seconds * (1 - done) / done))));
  if (p.violations > 0) out += fmt::format("  {} INVARIANTS VIOLATED", p.violations);
  if (p.train_loss && *p.train_loss > 0) out += fmt::format("  loss {:.3f}", *p.train_loss);
  out += fmt::format("  peers {}  rounds", p.peers_alive);
  constexpr const char* outcomes[] = {"ok", "partial", "split", "failed"};
  for (std::size_t i = 0; i < std::size(outcomes); ++i)
    if (auto n = status.rounds.by_outcome[i]; n > 0 || i == 0) out += fmt::format(" {} {}", n, outcomes[i]);
  return out;
}

std::string live_line::fitted(const scenarios::live_status& status, std::size_t columns) {
  auto line = text(status);
  for (std::size_t at; line.size() > columns && (at = line.find("  ")) != std::string::npos;) line.erase(at, 1);
  line.resize(std::min(line.size(), columns));
  return line;
}

void live_line::show(const scenarios::live_status& status) {
  auto now = std::chrono::steady_clock::now();
  if (terminal_) {
    auto line = fitted(status, terminal_columns(STDERR_FILENO).value_or(80) - 1);
    std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
    std::fflush(stderr);
    shown_ = true;
    return;
  }
  if (last_doing_ == status.doing && now - last_ < std::chrono::seconds(5)) return;
  last_ = now;
  last_doing_ = status.doing;
  std::fprintf(stderr, "%s %s\n", status.virtual_time ? "virtual" : "time", text(status).c_str());
}

void live_line::clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace shoal::tools
