#include "netem/wire/plain_words.hpp"

#include <string_view>
#include <utility>

namespace shoal::netem::wire {

std::string in_plain_words(const std::string& from_grpc) {
  constexpr std::pair<std::string_view, const char*> known[] = {
      {"Connection refused", "nothing listens there yet"},
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

} // namespace shoal::netem::wire
