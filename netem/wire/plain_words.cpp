#include "netem/wire/plain_words.hpp"

#include "netem/wire/end_reasons.hpp"

#include <fmt/format.h>

namespace shoal::netem::wire {

std::string host_in_words(std::string_view name, std::string_view address) {
  return address.empty() ? std::string(name) : fmt::format("{} ({})", name, address);
}

std::string end_in_words(std::string_view name, std::string_view address, const std::string& why) {
  const auto host = host_in_words(name, address);
  return why == has_ended ? host + " has ended" : fmt::format("lost {}: {}", host, why);
}

} // namespace shoal::netem::wire
