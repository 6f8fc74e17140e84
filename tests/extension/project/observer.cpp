// The role 'observer': a host that joins the DHT, reads the progress records every so often, and
// reports what it sees.
#include "actors/dht/messages.hpp"
#include "actors/observe.hpp"
#include "actors/protocol_actor.hpp"
#include "actors/training/progress.hpp"
#include "scenarios/roles/role.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <algorithm>

namespace extension {
using namespace shoal;
using namespace shoal::scenarios;

/// The records of the swarm, as one host finds them.
struct swarm_seen {
  static constexpr std::string_view observed_as = "swarm_seen";
  std::size_t peers = 0;
  std::uint64_t epoch = 0;
  std::string logged_fields() const {
    return "\"peers\":" + std::to_string(peers) + ",\"epoch\":" + std::to_string(epoch);
  }
};

struct observer_options {
  duration look_every = std::chrono::seconds(5);
  bool operator==(const observer_options&) const = default;
};

template <class V>
void describe(V& v, observer_options& o) {
  v.field("look_every", o.look_every, "time between two looks at the records", {.above = 0});
}

class observer final : public actors::protocol_actor {
public:
  enum timer : std::uint32_t { look, stop };
  observer(caf::actor_config& config, actors::host& on, caf::actor dht, duration every)
      : protocol_actor(config, on), dht_(std::move(dht)), every_(every) {}
  void on_exit() override {
    dht_ = nullptr;
    protocol_actor::on_exit();
  }

private:
  caf::behavior make_behavior() override {
    set_timer(every_, look);
    return {
        [this](actors::tick& due) {
          if (due.kind == stop) stopped_ = true;
          if (stopped_) return;
          send(dht_, actors::lookup{actors::progress_key, address(), 0});
          set_timer(every_, look);
        },
        [this](actors::found& answer) {
          swarm_seen seen;
          for (const auto& record : answer.records)
            if (const auto said = actors::progress::unpack(record->value))
              ++seen.peers, seen.epoch = std::max(seen.epoch, said->epoch);
          here().observe(seen);
        },
    };
  }

  caf::actor dht_;
  duration every_;
  bool stopped_ = false;
};

role_definition observer_role() {
  role_definition out;
  out.name = "observer";
  out.meaning = "reads the progress records and reports what they say";
  out.options = options_box::of(observer_options{});
  out.idle_actors = 2; // the observer and the DHT node
  out.spawn = [](const role_site& site) {
    return caf::actor_cast<caf::actor>(site.system.spawn<observer>(
        std::ref(site.on), site.dht, site.options.as<observer_options>().look_every));
  };
  out.drain = [](const caf::actor& who) { caf::anon_send(who, actors::tick{observer::stop, 0}); };
  return out;
}

} // namespace extension
