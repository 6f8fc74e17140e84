// The role 'stage': the host holds one stage of a model that trainers send micro-batches through.
// Source: Ryabinin et al., "SWARM Parallelism", arXiv:2301.11913.
#include "actors/host_messages.hpp"
#include "actors/pipeline/stage_peer.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/methods/pipeline.hpp"
#include "scenarios/roles/role.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

namespace shoal::scenarios {

role_definition stage_role() {
  role_definition out;
  out.name = "stage";
  out.meaning = "holds one stage of the model, in the method 'pipeline'";
  out.trains = true;
  out.has_model = false;
  out.idle_actors = 2; // the peer and the DHT node
  out.check = [](const scenario& what, const peer_group& group, checking& report) {
    const auto path = "peers." + group.name + ".role";
    if (report.sound({"training.method"}) && !traits_of(what).has_stages)
      report.error(path,
                   fmt::format("the method '{}' has no stages: each of its hosts holds the "
                               "whole model",
                               what.training.method.name()),
                   {"training.method: pipeline cuts the model into stages"});
    if (group.nat != netem::nat_class::open)
      report.error(path, fmt::format("the hosts of '{}' are behind a NAT: trainers reach a host of "
                                     "a stage at any time, so its line has to be open",
                                     group.name));
  };
  out.spawn = spawn_stage_peer;
  out.drain = [](const caf::actor& peer) {
    caf::anon_send(peer, actors::tick{actors::stage_peer::drain, 0});
  };
  return out;
}

} // namespace shoal::scenarios
