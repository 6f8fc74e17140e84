// A swarm with a moderator and a node for the tests of certificates. It also makes certificates
// that no moderator issues.
#pragma once

#include "netem/wire/moderator.hpp"
#include "netem/wire/pem.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace shoal::netem::wire {

using namespace std::chrono_literals;

/// 2026-11-21T21:00:00Z.
inline constexpr std::int64_t now = 1'795'294'800'000'000'000;
constexpr std::int64_t after(duration what) {
  return now + what.count();
}
inline constexpr duration day = 24h;

inline moderator new_moderator(const char* name = "reef") {
  auto made = moderator::make(name, now, 365 * day);
  REQUIRE(made.ok());
  return *std::move(made);
}

inline std::string admit(const moderator& by, const char* name, const signing_key& key,
                         duration validity = 30 * day) {
  auto made = by.admit(name, key.public_key(), now, validity);
  REQUIRE(made.ok());
  return *made;
}

inline revocation_list read_list(const moderator& by, const std::string& pem) {
  auto read = revocation_list::read(pem, by.certificate_pem());
  REQUIRE(read.ok());
  return *std::move(read);
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The error of check_issued() for `pem`; "" if there is none.
inline std::string refusal(const std::string& pem, const moderator& by, std::int64_t utc_ns = now) {
  const auto checked = check_issued(pem, by.certificate_pem(), utc_ns);
  return checked ? "" : checked.error();
}

} // namespace shoal::netem::wire
