// The role 'auxiliary': the host neither trains nor holds a model. It reduces in every round.
// Source: Diskin et al., arXiv:2106.10207, section 3.2.
#include "actors/host_messages.hpp"
#include "actors/training/auxiliary_peer.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/roles/role.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <fmt/format.h>

namespace shoal::scenarios {

// A role may name its parts as other roles name theirs.
namespace auxiliary_role_parts {
namespace {

void check(const scenario& what, const peer_group& group, checking& report) {
  const auto path = "peers." + group.name + ".role";
  if (report.sound({"training.method"}) && !traits_of(what).takes_auxiliaries)
    report.error(path, fmt::format("an auxiliary peer has no place in the method '{}', where "
                                   "everybody averages parameters of its own",
                                   what.training.method.name()));
  if (group.nat != netem::nat_class::open)
    report.warn(path, fmt::format("auxiliary peers of '{}' are behind a NAT: a peer that cannot be "
                                  "reached reduces nothing",
                                  group.name));
}

} // namespace
} // namespace auxiliary_role_parts

role_definition auxiliary_role() {
  using namespace auxiliary_role_parts;
  role_definition out;
  out.name = "auxiliary";
  out.meaning =
      "neither trains nor holds a model, and reduces in every round of the synchronous method";
  out.idle_actors = 3; // the peer, its device and the DHT node
  out.check = check;
  out.spawn = [](const role_site& site) {
    const actors::overlap_options swarm{traits_of(site.what).computes_meanwhile
                                            ? actors::overlap::averaging
                                            : actors::overlap::none};
    return caf::actor_cast<caf::actor>(site.system.spawn<actors::auxiliary_peer>(
        std::ref(site.on), site.config, swarm, site.pool, site.dht));
  };
  out.drain = [](const caf::actor& peer) {
    caf::anon_send(peer, actors::tick{actors::training_peer::drain, 0});
  };
  return out;
}

} // namespace shoal::scenarios
