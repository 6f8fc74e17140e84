#include "tools/node_boot.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

namespace shoal::tools {

namespace {

using wall_clock = std::chrono::steady_clock;

/// The time until one process says that it is up. Its program is this one.
result<duration> boot_once(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"shoal", "node"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failure{std::strerror(errno)};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> said(::fdopen(ends[0], "r"), &std::fclose);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
  const auto begun = wall_clock::now();
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/proc/self/exe", &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  if (error != 0) return failure{std::strerror(error)};
  std::string last = "nothing";
  bool up = false;
  char line[1024];
  while (!up && std::fgets(line, sizeof line, said.get()) != nullptr) {
    last = line;
    up = last.find(": up") != std::string::npos;
  }
  const auto took = wall_clock::now() - begun;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (!up) return failure{"a node did not come up. It said: " + last.substr(0, last.find('\n'))};
  return std::chrono::duration_cast<duration>(took);
}

} // namespace

result<duration> measure_boot(const std::vector<std::string>& arguments) {
  constexpr std::size_t starts = 5;
  std::vector<duration> all;
  for (std::size_t i = 0; i < starts; ++i) {
    const auto one = boot_once(arguments);
    if (!one) return one;
    all.push_back(*one);
  }
  std::nth_element(all.begin(), all.begin() + starts / 2, all.end());
  return all[starts / 2];
}

} // namespace shoal::tools
