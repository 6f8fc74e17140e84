#include "actors/inference/observations.hpp"

#include <fmt/format.h>

namespace shoal::actors {

std::string token_chosen::logged_fields() const {
  return fmt::format(R"("request":{},"position":{},"token":{})", request, position, token);
}

std::string route_chosen::logged_fields() const {
  std::string list;
  for (const auto& hop : hops)
    list += fmt::format(R"({}{{"server":"{:x}","first":{},"last":{}}})", list.empty() ? "" : ",",
                        hop.server, hop.layers.first, hop.layers.last);
  return fmt::format(R"("request":{},"hops":[{}])", request, list);
}

const char* span_lost::reason() const noexcept {
  return why == refusal::none ? "the server is gone" : to_string(why);
}

std::string span_lost::logged_fields() const {
  return fmt::format(R"("request":{},"server":"{:x}","why":"{}")", request, server, reason());
}

std::string layers_missing::text() const {
  return fmt::format("no server holds layers {}:{}: waiting for one", layers.first, layers.last);
}

std::string layers_missing::logged_fields() const {
  return fmt::format(R"("request":{},"first":{},"last":{})", request, layers.first, layers.last);
}

std::string check_waits::text() const {
  return fmt::format("two servers differ on layers {}:{}: waiting for a third one", layers.first,
                     layers.last);
}

std::string check_waits::logged_fields() const {
  return fmt::format(R"("request":{},"first":{},"last":{})", request, layers.first, layers.last);
}

std::string layers_taken::logged_fields() const {
  return fmt::format(R"("first":{},"last":{},"was_first":{},"was_last":{})", layers.first,
                     layers.last, before.first, before.last);
}

std::string outputs_checked::logged_fields() const {
  return fmt::format(R"("request":{},"tokens":{},"passes":{},"disputed":{},"unchecked":{})",
                     request, tokens, passes, disputed, unchecked);
}

std::string wrong_server::logged_fields() const {
  return fmt::format(R"("request":{},"server":"{:x}","kept":{},"retracted":{})", request, server,
                     kept, retracted);
}

std::string request_done::logged_fields() const {
  return fmt::format(R"("request":{},"tokens":{},"replayed":{})", request, tokens, replayed);
}

} // namespace shoal::actors
