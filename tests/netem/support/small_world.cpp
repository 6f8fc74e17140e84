#include "tests/netem/support/small_world.hpp"

#include "kernels/base/check.hpp"

namespace shoal::netem::testing {

namespace {

std::atomic<std::size_t> live_puppets{0};

message_class classify(const caf::type_erased_tuple& content) {
  if (content.match_elements<note>()) return {0, "note"};
  if (content.match_elements<ask>()) return {0, "ask"};
  if (content.match_elements<bulk>()) return {1, "bulk"};
  if (content.match_elements<intro>()) return {0, "intro"};
  return {};
}

} // namespace

puppet::puppet(caf::actor_config& config, small_world& in, script what)
    : caf::event_based_actor(config), in_(in), host_(coordinator::current_host()),
      script_(std::move(what)) {
  ++live_puppets;
  set_default_handler(
      [this](caf::scheduled_actor*, caf::message_view&) -> caf::result<caf::message> {
        ++in_.unexpected;
        return caf::message{};
      });
  set_error_handler([](caf::scheduled_actor*, caf::error&) {});
  set_down_handler([this](caf::scheduled_actor*, caf::down_msg& down) {
    if (on_down) on_down(down);
  });
  set_exit_handler(
      [](caf::scheduled_actor* self, caf::exit_msg& exit) { self->quit(exit.reason); });
}

puppet::~puppet() {
  --live_puppets;
}

std::size_t puppet::live() noexcept {
  return live_puppets;
}

void puppet::enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) {
  in_.net->note_arrival(host_);
  caf::event_based_actor::enqueue(std::move(element), unit);
}

caf::actor puppet::child(script what) {
  return caf::actor_cast<caf::actor>(spawn<puppet>(std::ref(in_), std::move(what)));
}

small_world::small_world(time_mode mode, std::uint64_t seed, unsigned workers,
                         duration detection_time)
    : config(mode, workers), clock([&]() -> coordinator& {
        config.add_message_type<note>("note");
        config.add_message_type<ask>("ask");
        config.add_message_type<bulk>("bulk");
        config.add_message_type<intro>("intro");
        system.emplace(config);
        system->await_actors_before_shutdown(false);
        return coordinator::of(*system);
      }()) {
  fabric_options options;
  options.seed = seed;
  options.classify = classify;
  options.detection_time = detection_time;
  if (mode == time_mode::virtual_time)
    options.on_event = [this](const delivered_event& event) {
      if (watch)
        watch(event);
      else
        history.push_back(event);
    };
  owned_net_ = std::make_unique<fabric>(*system, std::move(options));
  net = owned_net_.get();
  here = net->add_region("here");
}

small_world::~small_world() {
  SHOAL_CHECK(net->bypassed() == expected_bypassed, "messages go through the network");
  owned_net_.reset(); // `net` stays valid, since actors that end now use it
  SHOAL_CHECK(puppet::live() == 0, "no actor outlives its world");
  SHOAL_CHECK(port::live() == 0, "no port outlives its world");
  system.reset();
}

host_index small_world::host(double up, double down) {
  auto machine = net->add_machine("m", here, {up}, {down == 0 ? up : down});
  return net->start_host(machine);
}

caf::actor small_world::spawn(host_index on, puppet::script what) {
  acting_as as{on};
  return caf::actor_cast<caf::actor>(system->spawn<puppet>(std::ref(*this), std::move(what)));
}

caf::actor small_world::collector(host_index on, std::vector<received>& into) {
  return spawn_public(on, [&into](puppet& self) -> caf::behavior {
    auto take = [&self, &into](std::uint32_t n) { into.push_back({self.world().now(), n}); };
    return {[take](const note& x) { take(x.n); },
            [take](const ask& x) {
              take(x.n);
              return note{x.n};
            },
            [take](const bulk& x) { take(x.n); }};
  });
}

void small_world::does(host_index on, std::function<void(puppet&)> what) {
  spawn(on, [what = std::move(what)](puppet& self) -> caf::behavior {
    // The function `what` may choose another behavior.
    self.become(caf::behavior{[](const note&) {}});
    what(self);
    return {};
  });
}

void small_world::does_at(duration when, host_index on, std::function<void(puppet&)> what) {
  clock.at(when, [this, on, what = std::move(what)] { does(on, what); });
}

std::uint64_t small_world::wire_bytes_of(const char* type) const {
  for (auto& event : history)
    if (event.kind == event_kind::message && std::string_view(event.type) == type)
      return event.wire_bytes;
  return 0;
}

} // namespace shoal::netem::testing
