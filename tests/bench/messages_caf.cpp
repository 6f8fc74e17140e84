// The same actors on CAF's own test coordinator: no network, no hosts, no time.
// Usage: messages_caf ACTORS PER_HOST HOPS
#include "tests/bench/messages_actor.hpp"

#include <caf/scheduler/test_coordinator.hpp>

using namespace shoal::bench;

int main(int argc, char** argv) {
  messages_state in{messages_work(argc, argv), {}};
  caf::actor_system_config config;
  config.add_message_type<token>("token");
  config.set("scheduler.policy", caf::atom("testing"));
  config.set("logger.verbosity", caf::atom("quiet"));
  caf::actor_system system(config);
  auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());

  auto before = resident_bytes();
  for (std::size_t i = 0; i < in.work.actors; ++i)
    in.all.push_back(caf::actor_cast<caf::actor>(system.spawn<relay>(std::ref(in), i)));
  scheduler.run();
  auto bytes_per_actor = (resident_bytes() - before) / static_cast<double>(in.work.actors);

  for (auto& actor : in.all) caf::anon_send(actor, caf::unit);
  auto start = processor_seconds();
  scheduler.run();
  auto seconds = processor_seconds() - start;
  print(in.tally, seconds, 0, bytes_per_actor);
  std::fflush(stdout);
  std::_Exit(0);
}
