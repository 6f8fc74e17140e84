// The same transfers on SimGrid mailboxes with a receiver set (host-to-host communications keep a
// list that is searched for each). No acknowledgement is sent: the sender waits for the end of its
// own sends and then sleeps for one delay. This is the cheapest way to the same times. Received
// transfers are taken out once a round.
// Models: `same` is CM02 without cross-traffic and window, plain max-min sharing like Shoal's;
// `lv08` is the default.
// Usage: transfers_simgrid (groups N M R | random N R) [same | lv08]
#include "tests/bench/transfers.hpp"

#include <simgrid/s4u.hpp>

#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;
using namespace shoal::bench;

int main(int argc, char** argv) {
  auto work = transfers_work::parse(argc, argv);
  if (!work) return 2;
  auto last_number = work->groups ? 4 : 3;
  bool defaults = argc > last_number + 1 && std::string_view(argv[last_number + 1]) == "lv08";
  std::vector<std::string> arguments{argv[0], "--cfg=contexts/guard-size:0",
                                     "--cfg=contexts/stack-size:16", "--log=root.thresh:error"};
  if (!defaults)
    arguments.insert(arguments.end(), {"--cfg=network/model:CM02", "--cfg=network/crosstraffic:0",
                                       "--cfg=network/TCP-gamma:0", "--cfg=network/weight-S:0"});
  std::vector<char*> pointers;
  for (auto& a : arguments) pointers.push_back(a.data());
  auto count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);

  stopwatch setup;
  sg4::Engine engine(&count, pointers.data());
  auto* star = sg4::create_star_zone("star");
  std::vector<sg4::Host*> hosts;
  std::vector<sg4::Mailbox*> mailboxes;
  for (std::size_t i = 0; i < work->peers; ++i) {
    auto name = std::to_string(i);
    auto* host = star->create_host("peer-" + name, 1e9);
    auto* up = star->create_link("up-" + name, work->up_bytes_per_second(i))
                   ->set_latency(transfers_work::link_delay_seconds);
    auto* down = star->create_link("down-" + name, work->down_bytes_per_second(i))
                     ->set_latency(transfers_work::link_delay_seconds);
    star->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {sg4::LinkInRoute(up)}, false);
    star->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, {sg4::LinkInRoute(down)},
                    false);
    hosts.push_back(host);
    mailboxes.push_back(sg4::Mailbox::by_name(name));
  }
  star->seal();

  static char content;
  std::uint64_t finished = 0;
  double end = 0;
  for (std::size_t i = 0; i < work->peers; ++i) {
    auto actor = sg4::Actor::create("peer-" + std::to_string(i), hosts[i], [&, i] {
      std::vector<sg4::CommPtr> sends;
      for (std::size_t round = 0; round < work->rounds; ++round) {
        work->each_receiver(i, round, [&](std::size_t to) {
          if (work->groups)
            sends.push_back(mailboxes[to]->put_async(&content, work->chunk_bytes()));
          else
            mailboxes[to]->put(&content, work->chunk_bytes());
        });
        for (auto& send : sends) send->wait();
        sends.clear();
        finished += work->sends_per_round();
        while (mailboxes[i]->ready()) mailboxes[i]->get<char>();
        end = sg4::Engine::get_clock();
        if (round + 1 < work->rounds)
          sg4::this_actor::sleep_for(2 * transfers_work::link_delay_seconds);
      }
    });
    mailboxes[i]->set_receiver(actor);
  }
  auto setup_seconds = setup.processor_seconds();

  stopwatch watch;
  engine.run();
  print_transfers(end, finished, watch, setup_seconds);
  std::_Exit(finished == work->flows() ? 0 : 3);
}
