// A client's pass of a batch through the layers of servers, forward and then backward. The chain
// says which server computes which span, and what to send next. A plain state machine.
//
// The chain keeps the input of each span. A span whose server is lost gets a new route:
//   forward:  its servers get the span's input again, and later spans wait for the output
//   backward: the first servers of the route compute forward again, up to the input of the last
//             one, which then computes the gradient
// A span whose gradient is known is gone, so no pass backward counts twice.
// Source: Borzunov et al., arXiv:2209.01188, section 3.2; arXiv:2312.08361, section 3.
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

class pass_chain {
public:
  struct needs_route {
    layer_span layers;
  };
  /// The caller sends this to the server, and calls sent(). The spans stay valid until then.
  struct request {
    peer_id server = 0;
    layer_span layers;
    std::span<const float> input;
    std::span<const float> gradient; ///< the output's; empty for a forward pass
  };
  struct waits {};
  /// The output is known, or after back() the gradient.
  struct done {};
  using step = std::variant<done, needs_route, request, waits>;

  /// A pass of `input` through `layers`. `prompt_floats`: of one layer's prompts. Requires: layers
  /// and an input that are not empty.
  pass_chain(layer_span layers, std::vector<float> input, std::size_t prompt_floats = 0);

  step next() const;
  /// Gives the open span `layers` to the servers of `route`. Requires: the span is open, and the
  /// route covers it.
  void routed(layer_span layers, std::span<const route_hop> route);
  /// The request of next() is under way, as number `token`.
  void sent(std::uint64_t token);
  /// The result of request `token`, with the gradient of its layers' prompts after a backward pass.
  /// False, and nothing changes, if no such request is under way or a size is another one.
  bool answered(std::uint64_t token, std::vector<float> values, std::span<const float> prompts);
  /// The spans of a server are open again. True if it had one.
  bool lost(peer_id server);
  /// The server of request `token`, whose spans are open again. Empty if no such request is under
  /// way.
  std::optional<peer_id> lost_request(std::uint64_t token);

  /// Begins the backward pass with the gradient of the output. Requires: next() is done, the
  /// pass has not gone back yet, and `gradient` has the size of the output.
  void back(std::vector<float> gradient);
  bool goes_back() const noexcept { return !gradient_.empty(); }

  /// The output of the last layer. Requires: next() is done, before back().
  const std::vector<float>& output() const noexcept { return output_; }
  /// The gradient of the input, and of the prompts [layers, prompt_floats]. Requires: next() is
  /// done, after back().
  const std::vector<float>& gradient() const noexcept { return gradient_; }
  const std::vector<float>& prompt_gradient() const noexcept { return prompt_gradient_; }
  /// Layers that losses made the swarm compute once more.
  std::uint64_t repeated() const noexcept { return repeated_; }

private:
  struct one_span {
    layer_span layers;
    std::optional<peer_id> server{};
    std::vector<float> input{}; // empty: not known
  };
  struct flight {
    std::size_t span = 0;
    std::uint64_t token = 0;
    bool back = false;
  };
  /// The span that computes next, and whether it computes the gradient. Empty: done.
  std::optional<flight> due() const;

  layer_span layers_;
  std::size_t size_, prompt_floats_;
  std::vector<one_span> spans_; // backward: those whose gradient is unknown
  std::optional<flight> flight_;
  std::vector<float> output_, gradient_, prompt_gradient_;
  std::uint64_t repeated_ = 0;
};

} // namespace shoal::actors
