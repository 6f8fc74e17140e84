// An admitted host sends every actor of a node messages that can be read and mean nothing. No
// message from a peer can crash another peer.
#include "actors/messages.hpp"
#include "netem/coordinator.hpp"
#include "netem/wire/message_codec.hpp"
#include "tests/actors/support/message_filler.hpp"
#include "tests/cluster/support/attacker.hpp"
#include "tests/support/skip.hpp"

#include <caf/actor_system.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::cluster;
using namespace shoal::netem::wire;

namespace {

constexpr std::uint64_t epochs = 100;

/// `each` messages of every type that one host may send another.
std::vector<std::string> senseless(caf::actor_system& system, rng& random, std::size_t each) {
  std::vector<std::string> out;
  const caf::actor nobody;
  actors::testing::filler fill{random, nobody, true};
  actors::testing::for_each_type(actors::testing::all_messages{}, [&]<class Message>(Message*) {
    if (!actors::goes_between_hosts(
            fmt::format("shoal::{}", actors::kind_of(caf::make_message(Message{}).content()).name)))
      return;
    for (std::size_t i = 0; i < each; ++i) {
      Message one;
      fill(one);
      const auto bytes = encode(system, caf::make_message(std::move(one)).content());
      REQUIRE(bytes.beside.empty());
      out.emplace_back(bytes.binary.begin(), bytes.binary.end());
    }
  });
  return out;
}

} // namespace

TEST_CASE("a swarm trains on while an admitted host sends every actor of two nodes meaningless "
          "messages") {
  swarm reef(attacked_swarm(4, epochs));
  const std::vector<std::string> honest{"p-0", "p-1", "p-2", "shard-0"};
  for (const auto& name : honest) reef.start(name, {"--quiet"});
  REQUIRE_MESSAGE(wait_until([&] { return reef.metrics("p-0")["shoal_epoch"] >= 1; }),
                  reef.node("p-0").err());

  netem::system_config config(netem::time_mode::wall_clock);
  actors::register_messages(config);
  caf::actor_system system(config);
  auto random = stream(7, "senseless");
  constexpr std::uint32_t actors_of_a_node = 40; // ordinals beyond the last actor have no receiver
  std::uint64_t sent = 0, links = 0, cut = 0;
  for (const std::string target : {"p-0", "shard-0"}) {
    const auto all = senseless(system, random, tries(6, 60));
    std::unique_ptr<false_host> mallory;
    const auto connect = [&] {
      const auto name = fmt::format("mallory-{}", ++links);
      mallory = std::make_unique<false_host>(
          reef.address_of(target),
          credentials_of(reef.admit(name), reef.moderator().certificate_pem()));
      mallory->greet(reef.hello_of(name, links));
      REQUIRE_MESSAGE(mallory->answer(), mallory->why_closed());
    };
    connect();
    for (std::uint32_t actor = 0; actor < actors_of_a_node; ++actor) {
      for (std::size_t i = 0; i < all.size(); ++i)
        mallory->send(static_cast<int>(i % 2), message_to(actor, all[i], 3));
      sent += all.size();
      // When the node disconnects it, the host connects again under another name.
      if (mallory->closed(std::chrono::milliseconds(20))) {
        ++cut;
        connect();
      }
    }
  }
  // The messages have reached the two nodes.
  for (const char* name : {"p-0", "shard-0"})
    CHECK_MESSAGE(wait_until([&] { return reef.metrics(name)["shoal_misbehaved_total"] > 100; }),
                  name);
  const auto now = reef.metrics("p-0");
  MESSAGE(sent << " messages over " << links << " links, " << cut << " of them cut, "
               << now.at("shoal_misbehaved_total") << " refused by actors of p-0, until epoch "
               << now.at("shoal_epoch"));
  CHECK(now.at("shoal_epoch") < epochs);
  reef.check_trained(epochs);
}
