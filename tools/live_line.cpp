#include "tools/live_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace shoal::tools {

namespace {

std::string clock_text(double seconds) {
  auto whole = static_cast<long long>(seconds);
  if (whole >= 86400) return fmt::format("{}d{:02}h", whole / 86400, whole % 86400 / 3600);
  if (whole >= 3600) return fmt::format("{}h{:02}m{:02}s", whole / 3600, whole % 3600 / 60, whole % 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{:.1f}s", seconds);
}

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string live_line::text(const scenarios::live_status& status) {
  const auto& p = status.progress;
  const auto& n = status.rounds.by_outcome;
  auto virtual_seconds = to_seconds(p.time);
  std::string out = fmt::format("{} {}", clock_text(virtual_seconds),
                                status.epochs_target > 0 ? fmt::format("epoch {}/{}", p.epoch, status.epochs_target)
                                                         : fmt::format("epoch {}", p.epoch));
  if (p.train_loss && *p.train_loss > 0) out += fmt::format("  loss {:.3f}", *p.train_loss);
  out += fmt::format("  peers {}  rounds {} ok {} partial {} split {} failed", p.peers_alive, n[0], n[1], n[2], n[3]);
  auto done = status.epochs_target > 0 ? static_cast<double>(p.epoch) / static_cast<double>(status.epochs_target)
                                       : virtual_seconds / std::max(1e-9, to_seconds(status.stop_time));
  if (std::string_view(status.doing) == "baseline")
    out += "  now the same on one machine";
  else if (std::string_view(status.doing) == "ending")
    out += "  ending";
  else if (done > 0.01 && status.wall_seconds > 1)
    out += fmt::format("  ETA {}", clock_text(std::max(0.0, status.wall_seconds * (1 - done) / done)));
  if (p.violations > 0) out += fmt::format("  {} INVARIANTS VIOLATED", p.violations);
  return out;
}

void live_line::show(const scenarios::live_status& status) {
  auto now = std::chrono::steady_clock::now();
  if (terminal_) {
    auto line = text(status);
    line.resize(std::min(line.size(), terminal_width() - 1));
    std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
    std::fflush(stderr);
    shown_ = true;
    return;
  }
  if (last_doing_ == status.doing && now - last_ < std::chrono::seconds(5)) return;
  last_ = now;
  last_doing_ = status.doing;
  std::fprintf(stderr, "%s\n", text(status).c_str());
}

void live_line::clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace shoal::tools
