// Checks the outputs of a session's servers: other servers compute the same inputs again, in passes
// without state. A plain state machine without network and clock.
//
// Steps, for one span of layers after the other:
// - a second opinion: servers other than the span's compute its whole history. The span is right up
//   to now if each token agrees.
// - further opinions, while no two agree: each by servers that gave none before. The two that agree
//   are right, and all others are wrong.
// A check ends at the first span with a wrong opinion. If the span itself is wrong, later spans
// have wrong inputs. An opinion of several servers blames none of them, because one alone may be
// wrong.
//
// Two values agree if |a - b| <= tolerance * |b| for each token, in the Euclidean norm. A server
// that changes less is not found. Servers that lie together can be the first two that agree.
// Source: capability of Borzunov et al., arXiv:2209.01188, section 4, which names it as open.
#pragma once

#include "actors/ids.hpp"
#include "actors/inference/route.hpp"
#include "kernels/compress/codec.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <variant>
#include <vector>

namespace shoal::actors {

class output_check {
public:
  /// The inputs and outputs of a session's server: [tokens, width] each.
  struct computed_span {
    layer_span layers;
    peer_id server = 0;
    std::size_t since = 0; ///< outputs of tokens before it are those of earlier servers
    std::vector<float> inputs, outputs;
  };
  /// The check waits for a route through `layers` without the servers `except`.
  struct needs_route {
    layer_span layers;
    std::set<peer_id> except;
    bool decides = false; ///< earlier opinions differ
  };
  /// The caller sends this to the server as a pass, and calls sent().
  struct request {
    peer_id server = 0;
    layer_span layers;
    std::vector<float> activations{}; ///< [tokens, width]
  };
  struct waits {};
  enum class verdict : std::uint8_t {
    right,    ///< all spans that could be checked
    wrong,    ///< an opinion was wrong: `servers`, `from`
    disputed, ///< all opinions differ
  };
  struct done {
    verdict found = verdict::right;
    std::set<peer_id> servers{}; ///< the wrong ones; not an earlier server of the span
    /// The session is wrong from this token on, in this span. Empty: the session is right.
    struct place {
      std::size_t span = 0, token = 0;
    };
    std::optional<place> from{};
    std::size_t unchecked = 0; ///< spans for which there is no other server
  };
  using step = std::variant<done, needs_route, request, waits>;

  /// Requires: each span has as many tokens as the others, and at least one.
  output_check(std::vector<computed_span> spans, std::size_t width, double tolerance);

  step next() const;
  /// Requires: next() needs this route, and the route covers the layers.
  void routed(std::span<const route_hop> route);
  /// There is no such route.
  void unroutable();
  void sent(std::uint64_t token);
  /// The output of request `token`. False, and nothing changes, if it is not under way or has
  /// another size.
  bool answered(std::uint64_t token, std::span<const float> activations);
  /// The server is gone, silent, or refuses. The opinion begins anew if the server is part of it.
  bool lost(peer_id server);
  /// The server of request `token`, if that is under way.
  std::optional<peer_id> asked(std::uint64_t token) const;

private:
  struct opinion {
    std::vector<route_hop> hops{};
    std::size_t at = 0;
    std::vector<float> values{};
    bool is_complete() const { return !hops.empty() && at == hops.size(); }
    std::set<peer_id> servers() const;
  };
  const computed_span& now() const { return spans_[span_]; }
  void compare();
  void end_span();

  std::vector<computed_span> spans_;
  std::size_t width_;
  double tolerance_;
  std::size_t span_ = 0;
  opinion current_;
  std::vector<opinion> others_; // complete; each differs from the span's server and all others
  std::optional<std::uint64_t> flight_;
  std::optional<done> done_;
  std::size_t unchecked_ = 0;
};

/// How far apart two honest servers may be, for activations in this codec.
double check_tolerance(kernels::codec codec);

} // namespace shoal::actors
