// Messages through ports and fabric, in virtual time: 20 ms between any two hosts, 1 Gbit/s each.
// Usage: messages_shoal ACTORS PER_HOST HOPS [JITTER_MS]
#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "tests/bench/messages_actor.hpp"

using namespace shoal;
using namespace shoal::bench;

int main(int argc, char** argv) {
  messages_state in{messages_work(argc, argv), {}};
  std::chrono::milliseconds jitter{argc > 4 ? std::atoi(argv[4]) : 0};
  netem::system_config config(netem::time_mode::virtual_time);
  config.add_message_type<token>("token");
  caf::actor_system system(config);
  system.await_actors_before_shutdown(false);
  auto& clock = netem::coordinator::of(system);
  netem::fabric_options options;
  options.classify = [](const caf::type_erased_tuple& content) {
    return content.match_elements<token>() ? netem::message_class{0, "token"}
                                           : netem::message_class{};
  };
  netem::fabric net(system, std::move(options));
  auto here = net.add_region("here");
  net.set_path(here, here, {std::chrono::milliseconds(20), jitter});

  auto before = resident_bytes();
  std::vector<netem::host_index> hosts;
  std::vector<caf::actor> local;
  for (std::size_t i = 0; i < in.work.hosts(); ++i)
    hosts.push_back(
        net.start_host(net.add_machine("host-" + std::to_string(i), here, {1e9}, {1e9})));
  for (std::size_t i = 0; i < in.work.actors; ++i) {
    netem::acting_as as{hosts[i / in.work.per_host]};
    local.push_back(caf::actor_cast<caf::actor>(system.spawn<relay>(std::ref(in), i)));
    in.all.push_back(net.address_of(local.back()));
  }
  clock.run(std::chrono::milliseconds(1)); // all actors are up and idle
  auto bytes_per_actor = (resident_bytes() - before) / static_cast<double>(in.work.actors);

  for (auto& actor : local) caf::anon_send(actor, caf::unit);
  auto start = processor_seconds();
  auto end = clock.run(duration::max());
  auto seconds = processor_seconds() - start;
  print(in.tally, seconds, to_seconds(end), bytes_per_actor);
  std::fflush(stdout);
  std::_Exit(0); // taking 100,000 actors down is not what is measured
}
