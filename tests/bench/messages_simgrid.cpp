// The same work on SimGrid mailboxes with a receiver set (host-to-host communications keep a list
// that is searched for each). A star: each host has a private link of 1 Gbit/s each way with 10 ms,
// so 20 ms between any two hosts. Models: CM02 is plain max-min sharing (no cross-traffic, no
// window); Constant is SimGrid's cheapest: 20 ms for every message and nothing else. Usage:
// messages_simgrid ACTORS PER_HOST HOPS (CM02|Constant)
#include "tests/bench/messages.hpp"

#include <simgrid/s4u.hpp>

#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;
using namespace shoal::bench;

int main(int argc, char** argv) {
  messages_work work(argc, argv);
  std::string model = argc > 4 ? argv[4] : "CM02";
  std::vector<std::string> arguments{argv[0],
                                     "--cfg=contexts/guard-size:0",
                                     "--cfg=contexts/stack-size:16",
                                     "--cfg=network/crosstraffic:0",
                                     "--cfg=network/TCP-gamma:0",
                                     "--log=root.thresh:error"};
  if (model == "Constant") {
    arguments.insert(arguments.end(), {"--cfg=host/model:compound", "--cfg=network/model:Constant",
                                       "--cfg=network/latency-factor:0.02"});
  } else {
    arguments.push_back("--cfg=network/model:" + model);
  }
  std::vector<char*> pointers;
  for (auto& a : arguments) pointers.push_back(a.data());
  auto count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  sg4::Engine engine(&count, pointers.data());

  messages_tally tally;
  auto before = resident_bytes();
  auto links = model != "Constant"; // that model knows none
  auto* star = links ? sg4::create_star_zone("star") : sg4::create_empty_zone("none");
  std::vector<sg4::Host*> hosts;
  for (std::size_t i = 0; i < work.hosts(); ++i) {
    auto name = std::to_string(i);
    auto* host = star->create_host("host-" + name, 1e9);
    hosts.push_back(host);
    if (!links) continue;
    auto* link = star->create_split_duplex_link("link-" + name, 125e6)->set_latency(0.01);
    star->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                    {{link, sg4::LinkInRoute::Direction::UP}}, true);
  }
  star->seal();
  std::vector<sg4::Mailbox*> mailboxes;
  for (std::size_t i = 0; i < work.actors; ++i)
    mailboxes.push_back(sg4::Mailbox::by_name("m" + std::to_string(i)));
  std::size_t ready = 0;
  double bytes_per_actor = 0, start = 0, began = 0;
  for (std::size_t i = 0; i < work.actors; ++i)
    sg4::Actor::create("a" + std::to_string(i), hosts[i / work.per_host], [&, i] {
      auto send = [&](std::uint32_t hop) {
        // The hop is the payload itself: nothing is allocated for it.
        mailboxes[work.next(i, hop - 1)]
            ->put_init(reinterpret_cast<void*>(std::uintptr_t{hop}), 80)
            ->detach();
      };
      mailboxes[i]->set_receiver(sg4::Actor::self());
      if (++ready == work.actors)
        bytes_per_actor = (resident_bytes() - before) / static_cast<double>(work.actors);
      sg4::this_actor::sleep_for(1); // all actors are up
      if (start == 0) start = processor_seconds(), began = sg4::Engine::get_clock();
      send(1);
      for (std::uint32_t n = 0; n < work.hops; ++n) {
        auto hop =
            static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(mailboxes[i]->get<void>()));
        tally.add(i, hop);
        if (hop < work.hops) send(hop + 1);
      }
    });
  engine.run();
  print(tally, processor_seconds() - start, sg4::Engine::get_clock() - began, bytes_per_actor);
  std::fflush(stdout);
  std::_Exit(0);
}
