// A benchmark of scale: peers that look up keys in a ring all the time. Each peer is one CAF actor
// on a host of its own. Its contacts are the 20 peers at distances growing by powers, computed and
// not stored. Every 10 s, at a phase of its own, a peer looks up a random key. It asks the contact
// that is closest before the key, then the contact that this one names, one query at a time. The
// look-up ends when the owner answers. A query and its answer are small messages.
// Usage: lookups_shoal [PEERS] [VIRTUAL_SECONDS]    default 100000 1000
#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "tests/bench/transfers.hpp"

#include <caf/all.hpp>
#include <caf/meta/type_name.hpp>

#include <cmath>

using namespace shoal;
using namespace shoal::bench;

namespace {

struct query {
  std::uint32_t key = 0;
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, query& x) {
    return f(caf::meta::type_name("query"), x.key);
  }
};

struct nearest {
  std::uint32_t key = 0;
  std::uint32_t peer = 0;
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, nearest& x) {
    return f(caf::meta::type_name("nearest"), x.key, x.peer);
  }
};

struct lookups_state {
  std::size_t peers;
  std::vector<std::uint32_t> distances{}; // distances of the contacts, ascending; the first is 1
  std::vector<caf::actor> all{};
  std::uint64_t begun = 0, done = 0, queries = 0;
};

class peer : public caf::event_based_actor {
public:
  static constexpr auto period = std::chrono::seconds(10);

  peer(caf::actor_config& config, lookups_state& in, std::uint32_t index)
      : caf::event_based_actor(config), in_(in), index_(index), draws_(index) {}

  caf::behavior make_behavior() override {
    delayed_send(this, std::chrono::milliseconds(draws_.below(10'000)), caf::unit);
    return {[this](query x) {
              send(caf::actor_cast<caf::actor>(current_sender()), nearest{x.key, closest(x.key)});
            },
            [this](nearest x) {
              if (x.key != key_) return; // the answer belongs to a look-up that was given up
              if (x.peer == key_)
                ++in_.done;
              else
                ask(x.peer);
            },
            [this](caf::unit_t) {
              delayed_send(this, period, caf::unit);
              key_ = static_cast<std::uint32_t>(draws_.below(in_.peers));
              ++in_.begun;
              if (auto first = closest(key_); first == key_)
                ++in_.done;
              else
                ask(first);
            }};
  }

private:
  /// The contact that is closest before `key` or at it; itself at its own key.
  std::uint32_t closest(std::uint32_t key) const {
    auto size = static_cast<std::uint32_t>(in_.peers);
    auto ahead = (key + size - index_) % size;
    if (ahead == 0) return index_;
    auto step = *(std::upper_bound(in_.distances.begin(), in_.distances.end(), ahead) - 1);
    return (index_ + step) % size;
  }
  void ask(std::uint32_t whom) {
    ++in_.queries;
    send(in_.all[whom], query{key_});
  }

  lookups_state& in_;
  std::uint32_t index_;
  std::uint32_t key_ = 0;
  congruential draws_;
};

} // namespace

int main(int argc, char** argv) {
  lookups_state in{argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100'000};
  auto until = std::chrono::seconds(argc > 2 ? std::atoi(argv[2]) : 1000);
  constexpr std::size_t contacts = 20;
  for (std::size_t i = 0; i < contacts; ++i) {
    auto distance =
        std::pow(static_cast<double>(in.peers) / 2, static_cast<double>(i) / (contacts - 1));
    in.distances.push_back(std::max(static_cast<std::uint32_t>(distance),
                                    in.distances.empty() ? 1 : in.distances.back() + 1));
  }
  stopwatch setup;
  netem::system_config config(netem::time_mode::virtual_time);
  config.add_message_type<query>("query");
  config.add_message_type<nearest>("nearest");
  caf::actor_system system(config);
  system.await_actors_before_shutdown(false);
  auto& clock = netem::coordinator::of(system);
  netem::fabric_options options;
  options.classify = [](const caf::type_erased_tuple& content) {
    if (content.match_elements<query>()) return netem::message_class{0, "query"};
    return content.match_elements<nearest>() ? netem::message_class{0, "nearest"}
                                             : netem::message_class{};
  };
  netem::fabric net(system, std::move(options));
  auto here = net.add_region("here");
  net.set_path(here, here, {std::chrono::milliseconds(40), std::chrono::milliseconds(10)});
  in.all.reserve(in.peers);
  for (std::size_t i = 0; i < in.peers; ++i) {
    auto host = net.start_host(net.add_machine("peer-" + std::to_string(i), here, {20e6}, {100e6}));
    netem::acting_as as{host};
    in.all.push_back(net.address_of(caf::actor_cast<caf::actor>(
        system.spawn<peer>(std::ref(in), static_cast<std::uint32_t>(i)))));
  }
  auto setup_seconds = setup.processor_seconds();

  stopwatch watch;
  auto end = clock.run(until);
  auto cpu = watch.processor_seconds();
  std::printf("lookups=%llu finished=%llu queries=%llu messages_per_second=%.0f ",
              static_cast<unsigned long long>(in.begun), static_cast<unsigned long long>(in.done),
              static_cast<unsigned long long>(in.queries),
              2 * static_cast<double>(in.queries) / cpu);
  print_transfers(to_seconds(end), 0, watch, setup_seconds);
  std::_Exit(0);
}
