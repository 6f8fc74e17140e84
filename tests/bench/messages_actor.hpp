// The actor of the messages benchmarks that run on CAF: with and without our network between them.
#pragma once

#include "tests/bench/messages.hpp"

#include <caf/all.hpp>
#include <caf/meta/type_name.hpp>

#include <vector>

namespace shoal::bench {

struct token {
  std::uint32_t hop = 0;
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, token& x) {
    return f(caf::meta::type_name("token"), x.hop);
  }
};

struct messages_state {
  messages_work work;
  messages_tally tally;
  std::vector<caf::actor> all{}; // the receivers of the actors' messages
};

class relay : public caf::event_based_actor {
public:
  relay(caf::actor_config& config, messages_state& in, std::size_t index)
      : caf::event_based_actor(config), in_(in), index_(index) {}

  caf::behavior make_behavior() override {
    return {[this](token x) {
              in_.tally.add(index_, x.hop);
              if (x.hop < in_.work.hops)
                send(in_.all[in_.work.next(index_, x.hop)], token{x.hop + 1});
            },
            [this](caf::unit_t) { // begin
              send(in_.all[in_.work.next(index_, 0)], token{1});
            }};
  }

private:
  messages_state& in_;
  std::size_t index_;
};

} // namespace shoal::bench
