#include "tools/live_line.hpp"

#include "tools/terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace shoal::tools {

namespace {

/// The pieces of the line, the most important first: a narrow terminal loses the last ones. The
/// first `kept` pieces are not about speed.
struct pieces {
  std::vector<std::string> all;
  std::size_t kept = 0;
};

pieces pieces_of(const scenarios::live_status& status, const std::optional<live_line::pace>& now) {
  const auto& p = status.progress;
  const auto so_far = to_seconds(p.time);
  const std::string_view doing = status.doing;
  pieces out;
  auto& first = out.all.emplace_back(clock_text(so_far));
  first += status.epochs_target > 0 ? fmt::format(" epoch {}/{}", p.epoch, status.epochs_target)
                                    : fmt::format(" epoch {}", p.epoch);
  const auto done = status.epochs_target > 0
                        ? static_cast<double>(p.epoch) / static_cast<double>(status.epochs_target)
                        : so_far / std::max(1e-9, to_seconds(status.stop_time));
  if (doing != "baseline" && doing != "ending" && done > 0.01 && status.wall_seconds > 1)
    first += " " + eta_text(status.wall_seconds, done, 1 - done);
  if (doing == "baseline") {
    auto& text = out.all.emplace_back("now the same on one machine");
    if (const auto& at = status.reference; at.step > 0) {
      text += fmt::format(", step {}/{}", at.step, at.steps);
      const auto share = static_cast<double>(at.step) / static_cast<double>(at.steps);
      if (at.wall_seconds > 1) text += " " + eta_text(at.wall_seconds, share, 1 - share);
    }
  }
  if (doing == "ending") out.all.emplace_back("ending");
  if (p.violations > 0) out.all.push_back(fmt::format("{} INVARIANTS VIOLATED", p.violations));
  if (p.train_loss && *p.train_loss > 0)
    out.all.push_back(fmt::format("loss {:.3f}", *p.train_loss));
  out.all.push_back(fmt::format("peers {}", p.peers_alive));
  auto& rounds = out.all.emplace_back("rounds");
  constexpr const char* outcomes[] = {"ok", "partial", "split", "failed"};
  for (std::size_t i = 0; i < std::size(outcomes); ++i)
    if (const auto n = status.rounds.by_outcome[i]; n > 0 || i == 0)
      rounds += fmt::format(" {} {}", n, outcomes[i]);
  out.kept = out.all.size();
  if (now && doing == "running") {
    out.all.push_back(fmt::format("{:.3g} samples/s", now->samples_per_second));
    // On the wall clock the factor is 1.
    if (status.virtual_time)
      out.all.push_back(fmt::format("{:.3g}x real time", now->times_real_time));
  }
  return out;
}

std::string joined(const std::vector<std::string>& pieces, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += (i == 0 ? "" : "  ") + pieces[i];
  return out;
}

} // namespace

std::string live_line::text(const scenarios::live_status& status, const std::optional<pace>& now) {
  const auto what = pieces_of(status, now);
  return joined(what.all, what.all.size());
}

std::string live_line::fitted(const scenarios::live_status& status, std::size_t columns,
                              const std::optional<pace>& now) {
  const auto what = pieces_of(status, now);
  auto count = what.all.size();
  auto line = joined(what.all, count);
  while (line.size() > columns && count > what.kept) line = joined(what.all, --count);
  for (;;) {
    for (std::size_t at; line.size() > columns && (at = line.find("  ")) != std::string::npos;)
      line.erase(at, 1);
    if (line.size() <= columns || count == 1) break;
    line = joined(what.all, --count);
  }
  line.resize(std::min(line.size(), columns));
  return line;
}

std::string live_line::coloured(std::string line) {
  const auto paint = [&line](std::size_t from, std::size_t to, const char* colour) {
    line.insert(to, "\x1b[0m");
    line.insert(from, colour);
  };
  // The search goes from the end, so that earlier positions stay valid.
  for (const auto& [word, colour] : {std::pair{" failed", "\x1b[31m"},
                                     {" split", "\x1b[35m"},
                                     {" partial", "\x1b[33m"},
                                     {" INVARIANTS VIOLATED", "\x1b[1;31m"}})
    if (const auto at = line.find(word); at != std::string::npos && at > 0)
      paint(line.find_last_not_of("0123456789", at - 1) + 1, at + std::string_view(word).size(),
            colour);
  if (const auto at = line.find(' '); at != std::string::npos) paint(0, at, "\x1b[1m");
  return line;
}

std::optional<live_line::pace> live_line::pace_at(const scenarios::live_status& status) {
  constexpr double least = 1,
                   most = 8; // seconds of the wall clock over which the speed is measured
  const seen now{status.wall_seconds, to_seconds(status.progress.time), status.progress.samples};
  while (!seen_.empty() && now.wall_seconds - seen_.front().wall_seconds > most) seen_.pop_front();
  seen_.push_back(now);
  const auto& from = seen_.front();
  if (now.wall_seconds - from.wall_seconds < least || now.seconds <= from.seconds ||
      now.samples < from.samples)
    return std::nullopt;
  return pace{static_cast<double>(now.samples - from.samples) / (now.seconds - from.seconds),
              (now.seconds - from.seconds) / (now.wall_seconds - from.wall_seconds)};
}

void live_line::show(const scenarios::live_status& status) {
  const auto now = std::chrono::steady_clock::now();
  if (terminal_) {
    auto line = fitted(status, terminal_columns(STDERR_FILENO).value_or(80) - 1, pace_at(status));
    std::fprintf(stderr, "\r\x1b[K%s", (colour_ ? coloured(std::move(line)) : line).c_str());
    std::fflush(stderr);
    shown_ = true;
    return;
  }
  const auto pace = pace_at(status);
  if (last_doing_ == status.doing && now - last_ < std::chrono::seconds(5)) return;
  last_ = now;
  last_doing_ = status.doing;
  std::fprintf(stderr, "%s %s\n", status.virtual_time ? "virtual" : "time",
               text(status, pace).c_str());
}

void live_line::clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

} // namespace shoal::tools
