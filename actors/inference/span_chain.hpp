// A client's session with the servers that hold a model's layers: which server computes which span,
// and what to send to whom next. A plain state machine without network and clock.
//
// The chain keeps the inputs of each span: its history. `have` counts the tokens of the history
// whose keys and values the span's server holds. A request carries the tokens after them.
//   span 0              span 1                 span 2
//   history [0, known)  history [0, known)     history [0, known)
//   have <= known       outputs of span 0      outputs of span 1
// When a server is lost, its span alone gets a new route, and `have` becomes 0: the next request
// carries the whole history again. The first new span inherits the history. Later new spans get it
// as outputs of the spans before them. The spans of living servers keep what they have.
// So no death changes the result, as long as all servers compute the same bits.
// Source: Borzunov et al., arXiv:2209.01188, section 3.2 (the client replays its inputs).
#pragma once

#include "actors/ids.hpp"
#include "actors/inference/route.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace shoal::actors {

class span_chain {
public:
  /// The chain waits for a route through `layers`.
  struct needs_route {
    layer_span layers;
  };
  /// The caller sends this to the server, and calls sent().
  struct request {
    std::size_t span = 0;
    peer_id server = 0;
    std::uint64_t session = 0;
    layer_span layers;
    std::size_t from = 0, time = 0;   ///< tokens [from, from + time)
    std::vector<float> activations{}; ///< [samples, time, width]
    /// Before the tokens, sequence i becomes a copy of sequence order[i]. Empty: all stay.
    std::vector<std::uint32_t> order{};
  };
  /// A request is under way.
  struct waits {};
  /// All tokens have passed all layers.
  struct done {};
  using step = std::variant<done, needs_route, request, waits>;

  /// A session of `samples` sequences of at most `most` tokens, whose activations have `width`
  /// floats. With `keeps_outputs`, computed_spans() may be asked for. Requires: all positive.
  span_chain(std::uint32_t layers, std::size_t samples, std::size_t most, std::size_t width,
             bool keeps_outputs = false);

  std::size_t samples() const noexcept { return samples_; }
  std::size_t most() const noexcept { return most_; }
  /// The tokens that were fed.
  std::size_t length() const noexcept { return spans_.front().known; }

  /// Appends the embeddings [samples, time, width] of the next tokens. Requires: a multiple of a
  /// token, and room for them.
  void feed(std::span<const float> activations);
  /// Forgets the tokens from `length` on. The servers hear of it with the next request. Requires:
  /// length <= length().
  void rollback(std::size_t length);

  /// The outputs of span `span` are wrong from token `token` on: the spans after it forget them.
  /// The span's server computes its whole history again, unless it is lost. Requires: one sequence;
  /// token < length().
  void forget_outputs(std::size_t span, std::size_t token);
  /// The inputs and outputs of all spans so far. Requires: next() is done, one sequence, and the
  /// chain keeps outputs.
  struct computed {
    layer_span layers;
    peer_id server = 0;
    std::size_t since = 0; ///< outputs of tokens before it are those of earlier servers
    std::span<const float> inputs, outputs; ///< [length(), width]
  };
  std::vector<computed> computed_spans() const;

  /// Sequence i becomes a copy of the former sequence from[i], as beam search needs it. The servers
  /// hear of it with the next request. Requires: next() is done, samples() entries below samples().
  void reorder(std::span<const std::int64_t> from);

  step next() const;
  /// Gives the open span `layers` to the servers of `route`. `sessions` names a new session for
  /// each hop. Requires: the span is open, and the route covers it.
  void routed(layer_span layers, std::span<const route_hop> route,
              std::span<const std::uint64_t> sessions);
  /// The request is under way, as number `token`.
  void sent(const request& what, std::uint64_t token);
  /// The result of request `token`. False, and nothing changes, if no such request is under way or
  /// `activations` has another size.
  bool answered(std::uint64_t token, std::span<const float> activations);
  /// Request `token` is not under way any more, and next() gives it again. False if it was not.
  bool unsent(std::uint64_t token);
  /// The spans of a server are open again. True if it had one.
  bool lost(peer_id server);
  struct lost_span {
    peer_id server = 0;
    std::uint64_t session = 0;
    bool operator==(const lost_span&) const = default;
  };
  /// The span of request `token` is open again, if that request is under way. Returns who had it.
  std::optional<lost_span> lost_request(std::uint64_t token);

  /// The output [samples, count, width] of the last `count` tokens. Requires: next() is done, and
  /// those tokens were fed after the last call of take() or rollback().
  std::vector<float> take(std::size_t count);

  struct holder {
    layer_span layers;
    std::optional<peer_id> server;
    std::uint64_t session = 0;
    std::size_t have = 0, known = 0;
  };
  /// The spans with their servers, in the order of the layers.
  std::vector<holder> holders() const;
  /// Tokens times layers that were sent again after losses.
  std::uint64_t replayed() const noexcept { return replayed_; }
  /// The bytes of the histories.
  std::size_t history_bytes() const noexcept;

private:
  struct one_span {
    layer_span layers;
    std::optional<peer_id> server{};
    std::uint64_t session = 0;
    std::size_t known = 0, have = 0;
    std::size_t since = 0;        ///< as computed::since
    std::size_t once = 0;         ///< tokens that some server of this span has computed
    std::vector<float> history{}; ///< [known, samples, width]
    std::vector<std::uint32_t>
        order{}; ///< new order of the server's sequences, which it does not know yet
  };
  struct flight {
    std::size_t span = 0;
    std::uint64_t token = 0;
    std::size_t upto = 0;
  };

  std::size_t row() const noexcept { return samples_ * width_; }
  void append(std::vector<float>& to, std::span<const float> activations, std::size_t time,
              std::size_t skip) const;
  void open(one_span& span);
  /// Forgets the tokens from `length` on, in a span or in what has left the chain.
  void shorten(one_span& span, std::size_t length);
  void shorten_output(std::size_t length);

  std::size_t samples_, most_, width_;
  bool keeps_outputs_;
  std::vector<one_span> spans_;
  std::optional<flight> flight_;
  std::vector<float> output_; // [tokens since the last take, samples, width]
  std::vector<float> passed_; // [out_known_, width]; empty unless keeps_outputs_
  std::size_t out_known_ = 0; // the tokens that have left the chain
  std::uint64_t replayed_ = 0;
};

} // namespace shoal::actors
