// Whether code ends its process by a failed SHOAL_CHECK. The code runs in a child process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace shoal::testing {

template <class Code>
bool aborts(Code code) {
  const auto child = fork();
  if (child < 0) return false;
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
    code();
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

} // namespace shoal::testing
