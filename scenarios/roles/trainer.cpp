// The role 'trainer': the host computes, and takes part in the rounds of the training method.
#include "actors/host_messages.hpp"
#include "actors/training/training_peer.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/roles/role.hpp"

#include <caf/send.hpp>

namespace shoal::scenarios {

role_definition trainer_role() {
  role_definition out;
  out.name = "trainer";
  out.meaning = "streams samples, computes and averages";
  out.trains = true;
  out.spawn = [](const role_site& site) {
    return site.what.training.method.definition().spawn(site);
  };
  out.drain = [](const caf::actor& peer) {
    caf::anon_send(peer, actors::tick{actors::training_peer::drain, 0});
  };
  return out;
}

} // namespace shoal::scenarios
