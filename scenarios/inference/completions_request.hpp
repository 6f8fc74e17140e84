// Requests of the completions and chat protocol that clients of language models speak, from their
// bytes alone: GET /v1/models, POST /v1/completions, POST /v1/chat/completions.
// Source: the API reference of OpenAI, 'Completions', 'Chat' and 'Models'. Left out: several
// choices, log probabilities, tools, penalties and images. A request that asks for them is refused.
#pragma once

#include "kernels/learn/sampling.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shoal::scenarios {

/// The largest body of a request, in bytes.
inline constexpr std::size_t most_request_bytes = std::size_t{1} << 20;
inline constexpr std::size_t most_stops = 4, most_stop_bytes = 256;

/// A request as it came. Empty optionals: there is no such header.
struct http_order {
  std::string_view method, path;
  std::optional<std::string_view> host, authorization, content_type;
  std::string_view body;
};

/// The rules of one server.
struct http_rules {
  std::string own_host; ///< the server's address, as in a URL
  std::string machine;  ///< name of this machine if other machines reach the server
  std::string token;    ///< for access; empty: everybody has access
  std::string model;    ///< name of the model
};

/// A refusal, in the form of the protocol.
struct http_refusal {
  unsigned status = 400;
  std::string message, param{}, code{};
  /// {"error":{"message":…,"type":…,"param":…,"code":…}}
  std::string json() const;
  bool operator==(const http_refusal&) const = default;
};

/// A text that a client asks for.
struct completion_order {
  bool chat = false; ///< the answer has the form of a chat
  std::string prompt;
  std::optional<std::uint32_t> tokens; ///< empty: as many as the context has room for
  learn::sampling_options sampling{.temperature = 1};
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stops;
  bool stream = false;
  bool usage = false; ///< a last event of the stream counts tokens
  bool news =
      false; ///< events of the stream tell the servers that compute (extension `shoal_news`)
};

/// The page, the list of models, one model, or a text.
struct page_order {};
struct models_order {
  bool one = false;
};
using http_answer = std::variant<http_refusal, page_order, models_order, completion_order>;

/// Decides what to do about a request. A request under a foreign name is refused, and so is a body
/// that a foreign page may send (another Content-Type than application/json).
http_answer read_order(const http_order& from, const http_rules& rules);

} // namespace shoal::scenarios
