#include "scenarios/sweep/cells.hpp"

#include "kernels/base/descriptor.hpp"
#include "scenarios/observe/run_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;

struct child {
  std::size_t cell = 0;
  pid_t pid = -1;
  descriptor ended; ///< becomes readable when the process ends
  descriptor log;   ///< holds the lock; the child's copy holds it, too
};

std::string system_error(const std::string& doing) {
  return fmt::format("cannot {}: {}", doing, std::strerror(errno));
}

std::string last_line_of(const fs::path& log) {
  const auto text = read_file(log);
  if (!text) return {};
  std::string_view rest = *text;
  while (!rest.empty()) {
    const auto end = rest.find_last_not_of("\r\n");
    if (end == std::string_view::npos) return {};
    rest = rest.substr(0, end + 1);
    const auto begin = rest.find_last_of("\r\n");
    const auto line = rest.substr(begin == std::string_view::npos ? 0 : begin + 1);
    if (line.find_first_not_of(' ') != std::string_view::npos) return std::string(line);
    rest = rest.substr(0, begin == std::string_view::npos ? 0 : begin);
  }
  return {};
}

class runner {
public:
  runner(const sweep_plan& plan, const cell_runner& how)
      : plan_(plan), how_(how), cells_(how.directory / "cells") {}
  ~runner() { end_all(); }
  runner(const runner&) = delete;
  runner& operator=(const runner&) = delete;

  result<cells_outcome> run(const std::vector<std::size_t>& cells) {
    std::error_code error;
    fs::create_directories(cells_, error);
    if (error)
      return failure{fmt::format("cannot make '{}': {}", cells_.string(), error.message())};
    auto& progress = out_.progress;
    progress.cells = cells.size();
    for (const auto cell : cells)
      if (has_cell(plan_, how_.directory, cell))
        ++progress.finished;
      else
        waiting_.push_back(cell);
    while (!waiting_.empty() || !running_.empty()) {
      if (how_.interrupted && how_.interrupted()) {
        out_.interrupted = true;
        break;
      }
      if (auto begun = begin_some(); !begun) return failure{begun.error()};
      progress.running = running_.size();
      if (how_.on_progress) how_.on_progress(progress);
      wait_a_moment();
      if (auto ended = take_ended(); !ended) return failure{ended.error()};
    }
    end_all();
    progress.running = 0;
    std::sort(out_.failed.begin(), out_.failed.end(),
              [](const auto& a, const auto& b) { return a.cell < b.cell; });
    return std::move(out_);
  }

private:
  fs::path partial(std::size_t cell) const {
    return cells_ / (cell_name(plan_, cell) + ".partial");
  }

  /// Starts as many cells as `jobs` allows. A cell that another sweep holds moves to the end of the
  /// queue.
  result<void> begin_some() {
    for (std::size_t tries = waiting_.size(); tries > 0 && running_.size() < how_.jobs; --tries) {
      const auto cell = waiting_.front();
      waiting_.pop_front();
      if (has_cell(plan_, how_.directory, cell)) {
        ++out_.progress.finished;
        continue;
      }
      auto log = take(cell);
      if (!log) return failure{log.error()};
      if (!*log) {
        waiting_.push_back(cell);
        continue;
      }
      // Another sweep may have finished the cell between the two checks.
      if (has_cell(plan_, how_.directory, cell)) {
        std::error_code ignored;
        fs::remove_all(partial(cell), ignored);
        ++out_.progress.finished;
        continue;
      }
      if (auto begun = begin(cell, std::move(**log)); !begun) return begun;
    }
    return {};
  }

  /// Locks a cell and returns its log. Returns nothing when another sweep holds the cell.
  result<std::optional<descriptor>> take(std::size_t cell) {
    const auto folder = partial(cell);
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      return failure{fmt::format("cannot make '{}': {}", folder.string(), error.message())};
    const auto path = folder / "run.log";
    descriptor log(::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666));
    if (log.get() < 0) return failure{system_error(fmt::format("create '{}'", path.string()))};
    if (::flock(log.get(), LOCK_EX | LOCK_NB) != 0) return std::optional<descriptor>{};
    // Since this call opened the log, its owner may have renamed the folder or begun another log.
    struct stat opened {
    }, there{};
    if (::fstat(log.get(), &opened) != 0 || ::stat(path.c_str(), &there) != 0 ||
        opened.st_ino != there.st_ino)
      return std::optional<descriptor>{};
    if (::ftruncate(log.get(), 0) != 0)
      return failure{system_error(fmt::format("write '{}'", path.string()))};
    return std::optional(std::move(log));
  }

  result<void> begin(std::size_t cell, descriptor log) {
    std::vector<std::string> words{"shoal", "run", plan_.scenario};
    for (const auto& set : plan_.sets_of(plan_.point_of(cell)))
      words.insert(words.end(), {"--set", set});
    words.insert(words.end(), {"--seed", std::to_string(plan_.seed_of(cell)), "--out",
                               partial(cell).string(), "--force"});
    words.insert(words.end(), how_.arguments.begin(), how_.arguments.end());
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const auto parent = ::getpid();
    const auto pid = ::fork();
    if (pid < 0) return failure{system_error("start a process")};
    if (pid == 0) {
      // The process ends with its parent. Its own process group keeps the terminal's signals away,
      // so only the parent interrupts it.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      ::setpgid(0, 0);
      ::signal(SIGINT, SIG_DFL);
      ::signal(SIGTERM, SIG_DFL);
      ::dup2(log.get(), STDOUT_FILENO);
      ::dup2(log.get(), STDERR_FILENO);
      if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0)
        ::dup2(nothing, STDIN_FILENO);
      ::execv(how_.program.c_str(), argv.data());
      ::_exit(127);
    }
    // glibc 2.36 declares pidfd_open() without C linkage, so the call goes by number.
    descriptor ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    running_.push_back({cell, pid, std::move(ended), std::move(log)});
    return {};
  }

  void wait_a_moment() {
    // The progress bar, interrupts and the cells of other sweeps are looked at this often.
    constexpr int tick_ms = 250;
    std::vector<pollfd> on;
    for (const auto& each : running_) on.push_back({each.ended.get(), POLLIN, 0});
    ::poll(on.data(), on.size(), tick_ms);
  }

  result<void> take_ended() {
    for (auto each = running_.begin(); each != running_.end();) {
      int status = 0;
      const auto ended = ::waitpid(each->pid, &status, WNOHANG);
      if (ended == 0 || (ended < 0 && errno == EINTR)) {
        ++each;
        continue;
      }
      const auto cell = each->cell;
      const auto from = partial(cell), to = cells_ / cell_name(plan_, cell);
      ++out_.progress.ran;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        std::error_code error;
        fs::rename(from, to, error);
        if (error)
          return failure{fmt::format("cannot rename '{}': {}", from.string(), error.message())};
        ++out_.progress.finished;
      } else {
        const auto how = WIFSIGNALED(status) ? fmt::format("signal {} ({})", WTERMSIG(status),
                                                           ::strsignal(WTERMSIG(status)))
                                             : fmt::format("exit status {}", WEXITSTATUS(status));
        out_.failed.push_back({cell, how, last_line_of(from / "run.log")});
        ++out_.progress.failed;
      }
      each = running_.erase(each);
    }
    return {};
  }

  void end_all() {
    for (const auto& each : running_) ::kill(each.pid, SIGKILL);
    for (const auto& each : running_)
      while (::waitpid(each.pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    running_.clear();
  }

  const sweep_plan& plan_;
  const cell_runner& how_;
  fs::path cells_;
  std::deque<std::size_t> waiting_;
  std::vector<child> running_;
  cells_outcome out_;
};

} // namespace

bool has_cell(const sweep_plan& plan, const fs::path& directory, std::size_t cell) {
  std::error_code error;
  return fs::exists(directory / "cells" / cell_name(plan, cell) / "summary.json", error);
}

result<cells_outcome> run_cells(const sweep_plan& plan, const std::vector<std::size_t>& cells,
                                const cell_runner& how) {
  return runner(plan, how).run(cells);
}

} // namespace shoal::scenarios
