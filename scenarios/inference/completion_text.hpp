// The answer to a request for a text, as the completions and chat protocol writes it: whole, or as
// server-sent events while the tokens come. A plain state machine.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/model_file.hpp"
#include "scenarios/inference/completions_request.hpp"
#include "scenarios/inference/inference_process.hpp"
#include "scenarios/inference/text_stream.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

class completion_text {
public:
  /// Requires: `model` outlives this object.
  completion_text(completion_order order, const learn::served_model& model,
                  std::vector<learn::token_id> prompt, std::string id, std::int64_t created);

  const completion_order& order() const noexcept { return order_; }
  /// One more token. Returns the events for a stream; empty otherwise.
  std::string push(learn::token_id next);
  /// No token follows. Returns the last events of a stream.
  std::string end();
  /// Whether a stop text has ended the text.
  bool stopped() const noexcept { return text_.stopped(); }
  /// The whole answer. Requires: end().
  std::string whole() const;

private:
  std::string event(const std::string& piece, const char* finished);
  const char* reason() const;

  completion_order order_;
  std::string id_, model_;
  std::int64_t created_;
  std::size_t prompt_tokens_, most_;
  text_stream text_;
  std::string all_;
  std::size_t tokens_ = 0;
  bool begun_ = false;
};

/// The tokens that a request gets: its max_tokens, or what the context has room for. Errors: a
/// prompt, or a prompt and max_tokens, that the context has no room for.
result<std::uint32_t> room_for(const completion_order& order, std::size_t prompt_tokens,
                               std::size_t context);
/// The answer of /v1/models, or of /v1/models/NAME with `one`.
std::string models_json(const std::string& model, bool one);
/// An event of the extension `shoal_news`.
std::string news_event(const inference_news& news);

} // namespace shoal::scenarios
