#include "tools/interrupts.hpp"

#include "tools/exit_codes.hpp"

#include <unistd.h>

#include <csignal>

namespace shoal::tools {

namespace {

volatile std::sig_atomic_t count = 0;

void on_interrupt(int) {
  count = count + 1;
  if (count > 2) _exit(exit_interrupted); // the third signal ends the process at once
}

} // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() noexcept {
  return count > 0;
}

bool interrupted_again() noexcept {
  return count > 1;
}

} // namespace shoal::tools
