// The end of a process while other threads still close TLS connections.
#include "netem/wire/signing_key.hpp"

#include <doctest/doctest.h>
#include <openssl/crypto.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

using namespace shoal::netem::wire;

namespace {

/// Destroyed after the functions of atexit() that main() has registered, such as OpenSSL's.
struct last_of_all {
  bool asks = false;
  ~last_of_all() {
    if (asks) _exit(OPENSSL_init_crypto(0, nullptr) == 1 ? 0 : 7);
  }
} at_the_end;

} // namespace

TEST_CASE("OpenSSL works until a process has ended") {
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(1);
    at_the_end.asks = !signing_key::make().pem().view().empty();
    std::exit(2);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
