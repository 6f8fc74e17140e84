// The state of one host without a network, for the tests of host_state. Pipes are fake, and the
// test sets the time.
#pragma once

#include "netem/wire/host_state.hpp"
#include "tests/netem/wire/fake_pipe.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

namespace shoal::netem::wire {

using namespace std::chrono_literals;

inline node_key node(host_index host) {
  node_key out;
  out.incarnation = host;
  out.host.fill(static_cast<std::uint8_t>(host));
  return out;
}

inline frame bulk_of(std::size_t bytes) {
  return {std::vector<char>(bytes, 'x'), {}};
}

inline own_host one_that_relays(std::uint64_t bytes) {
  own_host out;
  out.relay_bytes = bytes;
  return out;
}
inline own_host one_that_listens() {
  own_host out;
  out.listens = true;
  return out;
}

/// The state of host 0. The time is `now`.
class host_fixture {
public:
  explicit host_fixture(own_host own = {}, wire_options options = {})
      : all(with_clock(std::move(options))), state(all, named(std::move(own)), around()) {}

  /// A link that host `other` has dialled and that is up.
  std::shared_ptr<host_link> linked(host_index other, const std::string& name,
                                    const std::string& address = "", bool dialled = false) {
    auto out = fake_link();
    out->theirs.name = name;
    out->theirs.address = address;
    out->theirs.incarnation = other;
    out->dialled = dialled;
    state.links.add(out);
    last = state.connect(out, other, {}, {}, {}, now);
    CHECK(last.done);
    return out;
  }
  void send(host_index to, std::size_t bytes, bool bulk = false) {
    std::vector<frame> frames;
    frames.push_back(bulk_of(bytes));
    later = {};
    state.send(to, std::move(frames), bulk, now, later);
  }
  void dial_due() {
    later = {};
    state.dial_due(state.tick(now), now, later);
  }

  duration now = 100s;
  deferred later;
  host_state::connected last;
  std::vector<std::string> dialled; // addresses, once for each pipe
  context all;
  host_state state;

private:
  static wire_options with_clock(wire_options options) {
    options.utc_ns = [] { return std::int64_t{0}; };
    return options;
  }
  static own_host named(own_host own) {
    own.name = "own";
    own.node = node(0);
    return own;
  }
  host_state::surroundings around() {
    host_state::surroundings out;
    out.node_of = node;
    out.open_pipe = [this](const std::string& where, int which) {
      dialled.push_back(where);
      return std::make_shared<fake_pipe>(which);
    };
    out.now = [this] { return now; };
    out.seed = 1;
    return out;
  }
};

/// The kinds of sent frames.
using kinds = std::vector<frame_kind>;

} // namespace shoal::netem::wire
