// The role 'expert': the host holds experts of a mixture, which trainers call.
// Source: Ryabinin and Gusev, "Learning@home", arXiv:2002.04013.
#include "actors/experts/expert_server.hpp"
#include "actors/host_messages.hpp"
#include "scenarios/methods/experts.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/roles/role.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

namespace shoal::scenarios {

role_definition expert_role() {
  role_definition out;
  out.name = "expert";
  out.meaning = "holds experts of the model, in the method 'experts'";
  out.trains = true;
  out.has_model = false;
  out.idle_actors = 2; // the server and the DHT node
  out.check = [](const scenario& what, const peer_group& group, checking& report) {
    const auto path = "peers." + group.name + ".role";
    if (report.sound({"training.method"}) && !traits_of(what).has_experts)
      report.error(path,
                   fmt::format("the method '{}' has no experts that other hosts could hold",
                               what.training.method.name()),
                   {"training.method: experts trains a mixture"});
    if (group.nat != netem::nat_class::open)
      report.error(path, fmt::format("the hosts of '{}' are behind a NAT: trainers reach a host of "
                                     "experts at any time, so its line has to be open",
                                     group.name));
  };
  out.spawn = spawn_expert_server;
  out.drain = [](const caf::actor& server) {
    caf::anon_send(server, actors::tick{actors::expert_server::drain, 0});
  };
  return out;
}

} // namespace shoal::scenarios
