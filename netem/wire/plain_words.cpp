#include "netem/wire/plain_words.hpp"

#include "netem/wire/end_reasons.hpp"

#include <fmt/format.h>

#include <utility>

namespace shoal::netem::wire {

namespace {

constexpr std::string_view connection_refused = "Connection refused";

} // namespace

bool nothing_listens(std::string_view from_grpc) {
  return from_grpc.find(connection_refused) != std::string_view::npos;
}

std::string in_plain_words(const std::string& from_grpc) {
  constexpr std::pair<std::string_view, const char*> known[] = {
      {connection_refused, "nothing listens there yet"},
      {"No route to host", "there is no route to it"},
      {"Network is unreachable", "there is no route to it"},
      {"Connection timed out", "it does not answer"},
      {"Deadline Exceeded", "it does not answer"},
      {"Connection reset by peer", "it closed the connection"},
      {"Socket closed", "it closed the connection"},
      {"Cancelled on the server side", "it closed the connection"},
      {"DNS resolution failed", "no name service knows it"},
      {"Name or service not known", "no name service knows it"}};
  for (const auto& [part, meaning] : known)
    if (from_grpc.find(part) != std::string::npos) return meaning;
  return from_grpc;
}

std::string host_in_words(std::string_view name, std::string_view address) {
  return address.empty() ? std::string(name) : fmt::format("{} ({})", name, address);
}

std::string end_in_words(std::string_view name, std::string_view address, const std::string& why) {
  const auto host = host_in_words(name, address);
  return why == has_ended ? host + " has ended"
                          : fmt::format("lost {}: {}", host, in_plain_words(why));
}

} // namespace shoal::netem::wire
