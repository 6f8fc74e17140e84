#include "netem/wire/network.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

using namespace shoal::netem::wire;

TEST_CASE("a network does not change the environment of its program") {
  const char* const names[] = {"GRPC_VERBOSITY", "GRPC_TRACE", "GRPC_SSL_CIPHER_SUITES"};
  std::vector<std::optional<std::string>> before;
  for (const auto* name : names) {
    const auto* value = std::getenv(name);
    before.push_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
    unsetenv(name);
  }
  {
    network over(wire_options{});
    CHECK(over.counts().links_open == 0);
  }
  for (std::size_t i = 0; i < std::size(names); ++i) {
    CAPTURE(names[i]);
    CHECK(std::getenv(names[i]) == nullptr);
    if (before[i]) setenv(names[i], before[i]->c_str(), 1);
  }
}
