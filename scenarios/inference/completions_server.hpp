// Serves texts over HTTP in the completions and chat protocol (completions_request.hpp), and a page
// with a chat box at `/`. A stream of server-sent events ends with `data: [DONE]`.
//
// One thread of libmicrohttpd answers all clients. Limits: 128 connections, 32 texts at a time
// (then status 429), 16 KiB of headers, 1 MiB of body. A request has to be complete after 10 s. The
// server closes a connection that is idle for 15 s, or takes nothing of an answer for 60 s.
// A text ends when its client has gone. A text that gets no token for 2 minutes fails with status
// 503.
// Extension: with "shoal_news": true, a stream has events {"shoal":{"text":…,"hops":[…]}} as the
// servers of a text change.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/model_file.hpp"
#include "scenarios/inference/inference_process.hpp"

#include <functional>
#include <memory>
#include <string>

namespace shoal::scenarios {

struct completions_options {
  std::string address; ///< in the format of parse_listen_address()
  std::string token;   ///< for access; required if other machines reach the address
  std::string page;    ///< HTML
  std::shared_ptr<const learn::served_model> model;
  /// As inference_process::write() and cancel().
  std::function<std::uint64_t(writing)> write;
  std::function<void(std::uint64_t)> cancel;
};

class completions_server {
public:
  /// Errors: an invalid address, a port in use, an address of another machine, or no token for an
  /// address that other machines reach.
  static result<std::unique_ptr<completions_server>> listen(completions_options options);
  /// Ends all texts. Requires: write() and cancel() can still be called.
  ~completions_server();
  completions_server(const completions_server&) = delete;

  /// Passes news on to the text's client. Thread safety: any thread.
  void tell(const inference_news& news);
  /// 'http://127.0.0.1:8000/'.
  const std::string& url() const noexcept { return url_; }

private:
  struct state;
  completions_server(std::unique_ptr<state> s, std::string url);
  std::unique_ptr<state> state_;
  std::string url_;
};

/// The token in this file, without line ends: 16 to 512 characters of ASCII without spaces.
/// Errors: no such file, a file that others may read, or a text that is no token.
result<std::string> read_access_token(const std::string& file);

} // namespace shoal::scenarios
