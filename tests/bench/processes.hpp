// Processes of a benchmark of all-reduce over sockets. They are forked before any thread exists,
// and share memory with a barrier and a place for the times of each round. The parent prints the
// times.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace shoal::bench {

inline constexpr std::size_t most_processes = 16, most_rounds = 256;

/// Nanoseconds of the machine's steady clock, the same in all processes.
inline std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The most memory that this process ever had resident, in KiB.
inline std::uint64_t most_resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      std::uint64_t out = 0;
      status >> out;
      return out;
    }
  return 0;
}

struct shared_times {
  pthread_barrier_t barrier;
  std::array<std::array<std::int64_t, most_processes>, most_rounds> begun, ended;
  std::array<std::uint64_t, most_processes> resident_kib;

  void wait() { pthread_barrier_wait(&barrier); }
};

/// Memory of zeros that processes forked from now on share; `T` has the fields of shared_times.
template <class T>
T& share(unsigned processes) {
  void* where = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (where == MAP_FAILED) std::perror("mmap"), std::exit(3);
  auto& out = *static_cast<T*>(where);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&out.barrier, &attributes, processes);
  return out;
}

/// Where a process is: a network namespace (empty: where we are) and its address there.
struct place {
  std::string space, address = "127.0.0.1";
};

/// SPACE:ADDRESS for each process, separated by commas.
inline std::vector<place> parse_places(const std::string& text) {
  std::vector<place> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    const auto one = text.substr(at, end - at);
    const auto colon = one.find(':');
    out.push_back(
        {one.substr(0, colon), colon == std::string::npos ? std::string{} : one.substr(colon + 1)});
    at = end + 1;
  }
  return out;
}

/// Moves this process into a network namespace of `ip netns`, by its name. As root.
inline void enter(const std::string& space) {
  if (space.empty()) return;
  const int file = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || setns(file, CLONE_NEWNET) != 0) std::perror(space.c_str()), _exit(3);
  close(file);
}

/// Runs `main` in so many processes and waits for them; false if one ended otherwise than with
/// status 0, after ending the others. `may_die` may be killed.
inline bool run_processes(unsigned count, const std::function<int(unsigned)>& main,
                          int may_die = -1) {
  std::vector<pid_t> children;
  for (unsigned i = 0; i < count; ++i) {
    const auto child = fork();
    if (child < 0) std::perror("fork"), std::exit(3);
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int status = main(i);
      std::fflush(stdout);
      // Threads of libraries may still use the libraries' static objects.
      _exit(status);
    }
    children.push_back(child);
  }
  bool good = true;
  for (unsigned left = count; left > 0; --left) {
    int status = 0;
    const auto who = wait(&status);
    const auto found = std::find(children.begin(), children.end(), who);
    if (found == children.end()) break;
    const bool killed =
        WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && found - children.begin() == may_die;
    *found = -1;
    if (killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) continue;
    good = false;
    for (const auto other : children)
      if (other > 0) kill(other, SIGKILL);
  }
  return good;
}

/// From the first that began to the last that ended.
inline double seconds_of(const shared_times& all, unsigned processes, std::size_t round) {
  const auto& begun = all.begun[round];
  const auto& ended = all.ended[round];
  return 1e-9 * static_cast<double>(*std::max_element(ended.begin(), ended.begin() + processes) -
                                    *std::min_element(begun.begin(), begun.begin() + processes));
}

/// `seconds=S` for each round but the first, which is looked at and not timed; then
/// `resident_mib=M`, the most of any process.
inline void print_times(const shared_times& all, unsigned processes, unsigned rounds) {
  for (unsigned r = 1; r <= rounds; ++r)
    std::printf("seconds=%.6f\n", seconds_of(all, processes, r));
  std::printf("resident_mib=%.1f\n",
              static_cast<double>(*std::max_element(all.resident_kib.begin(),
                                                    all.resident_kib.begin() + processes)) /
                  1024);
}

} // namespace shoal::bench
