// The transfers through ports and fabric: one actor for each peer, on a host of its own. A message
// takes exactly its serialized bytes here, without framing and TCP headers, as in a model that
// knows none. Usage: transfers_shoal (groups N M R | random N R) [lv08]
#include "actors/payload_inspect.hpp"
#include "kernels/base/check.hpp"
#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "tests/bench/transfers.hpp"

#include <caf/all.hpp>
#include <caf/meta/type_name.hpp>

using namespace shoal;
using namespace shoal::bench;

namespace {

struct chunk {
  std::uint8_t acknowledge = 0;
  payload data; // size-only: it has a size
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, chunk& x) {
    return f(caf::meta::type_name("chunk"), x.acknowledge, x.data);
  }
};
constexpr std::size_t chunk_overhead = 1 + 4; // the field and the payload's length

struct arrived {
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, arrived&) {
    return f(caf::meta::type_name("arrived"));
  }
};

struct transfers_state {
  transfers_work work;
  std::uint64_t received = 0;
  std::vector<caf::actor> all{}; // the receivers of the actors' messages
};

class peer : public caf::event_based_actor {
public:
  peer(caf::actor_config& config, transfers_state& in, std::size_t index)
      : caf::event_based_actor(config), in_(in), index_(index) {}

  caf::behavior make_behavior() override {
    start_round();
    return {[this](const chunk& x) {
              ++in_.received;
              if (x.acknowledge != 0)
                send(caf::actor_cast<caf::actor>(current_sender()), arrived{});
            },
            [this](arrived) {
              if (--pending_ == 0) start_round();
            }};
  }

private:
  void start_round() {
    auto& work = in_.work;
    bool last = round_ + 1 == work.rounds;
    pending_ = work.sends_per_round();
    work.each_receiver(index_, round_, [&](std::size_t to) {
      send(in_.all[to], chunk{!last, payload::size_only(work.chunk_bytes() - chunk_overhead)});
    });
    ++round_;
  }

  transfers_state& in_;
  std::size_t index_;
  std::size_t round_ = 0;
  std::size_t pending_ = 0;
};

} // namespace

int main(int argc, char** argv) {
  auto work = transfers_work::parse(argc, argv);
  if (!work) return 2;
  stopwatch setup;
  transfers_state in{*work};
  netem::system_config config(netem::time_mode::virtual_time);
  config.add_message_type<chunk>("chunk");
  config.add_message_type<arrived>("arrived");
  caf::actor_system system(config);
  system.await_actors_before_shutdown(false);
  auto& clock = netem::coordinator::of(system);
  netem::fabric_options options;
  options.wire_overhead = false;
  if (std::string_view(argv[argc - 1]) == "lv08") options.model = netem::transfer_model::lv08;
  options.classify = [](const caf::type_erased_tuple& content) {
    if (content.match_elements<chunk>()) return netem::message_class{0, "chunk"};
    return content.match_elements<arrived>() ? netem::message_class{1, "arrived"}
                                             : netem::message_class{};
  };
  netem::fabric net(system, std::move(options));
  auto here = net.add_region("here");
  net.set_path(here, here, {from_seconds(2 * transfers_work::link_delay_seconds), {}});
  for (std::size_t i = 0; i < work->peers; ++i) {
    auto host = net.start_host(net.add_machine("peer-" + std::to_string(i), here,
                                               {8 * work->up_bytes_per_second(i)},
                                               {8 * work->down_bytes_per_second(i)}));
    netem::acting_as as{host};
    in.all.push_back(
        net.address_of(caf::actor_cast<caf::actor>(system.spawn<peer>(std::ref(in), i))));
  }
  auto setup_seconds = setup.processor_seconds();

  stopwatch watch;
  auto end = clock.run(duration::max());
  print_transfers(to_seconds(end), in.received, watch, setup_seconds);
  SHOAL_CHECK(net.traffic_bytes(0) == work->flows() * work->chunk_bytes(),
              "a chunk takes its bytes on the wire");
  SHOAL_CHECK(net.traffic_bytes(1) == 0, "an acknowledgement takes none");
  std::_Exit(
      in.received == work->flows() ? 0 : 3); // taking 100,000 actors down is not what is measured
}
