#include "scenarios/runner/flat_world.hpp"

#include "actors/dht/dht_node.hpp"
#include "actors/dht/messages.hpp"

#include <utility>

namespace shoal::scenarios {

namespace {
constexpr std::size_t remembered_signatures = 1 << 16;
}

flat_world::flat_world(world_options options, flat_line line)
    : in_(std::make_unique<world>(std::move(options))), line_(line),
      signatures_(std::make_shared<actors::signature_cache>(remembered_signatures)) {}

flat_world::~flat_world() {
  directory_ = nullptr;
}

void flat_world::open() {
  region_ = net().add_region("here");
  netem::path_quality path;
  path.delay = line_.delay;
  net().set_path(region_, region_, path);
  directory_ = start_node(in_->boot(add_machine("directory")));
}

netem::machine_index flat_world::add_machine(std::string name) {
  return net().add_machine(
      {.name = std::move(name), .region = region_, .up = {line_.rate}, .down = {line_.rate}});
}

caf::actor flat_world::start_node(actors::host& on) {
  actors::dht_config config;
  config.signatures = signatures_;
  if (directory_) config.bootstraps.push_back(directory_);
  return in_->spawn<actors::dht_node>(on, std::move(config));
}

std::uint64_t flat_world::bytes() const {
  std::uint64_t out = 0;
  for (std::size_t c = 0; c < 4; ++c) out += in_->net().traffic_bytes(c);
  return out;
}

host_lives::host_lives(world& in, life_options options,
                       std::function<void(std::size_t, actors::host&)> start,
                       std::function<void(std::size_t, netem::host_index)> died)
    : in_(in), options_(std::move(options)), start_(std::move(start)), died_(std::move(died)) {}

void host_lives::add(netem::machine_index machine) {
  const auto i = machines_.size();
  machines_.push_back(machine);
  random_.push_back(stream(options_.seed, options_.stream, i));
  boot(i);
}

void host_lives::boot(std::size_t i) {
  auto& host = in_.boot(machines_[i]);
  const auto index = in_.index_of(host);
  {
    const std::lock_guard guard(guard_);
    number_of_[index] = i;
  }
  start_(i, host);
  if (options_.lifetime == duration{}) return;
  in_.clock().at(in_.clock().now() + drawn(i, options_.lifetime), [this, index] { kill(index); });
}

void host_lives::kill(netem::host_index host) {
  if (!in_.net().alive(host)) return;
  const auto i = [&] {
    const std::lock_guard guard(guard_);
    return number_of_.at(host);
  }();
  in_.net().kill(host, options_.scope);
  died_(i, host);
  in_.clock().at(in_.clock().now() + drawn(i, options_.downtime), [this, i] { boot(i); });
}

duration host_lives::drawn(std::size_t i, duration mean) {
  const std::lock_guard guard(guard_);
  return from_seconds(random_[i].exponential(to_seconds(mean)));
}

} // namespace shoal::scenarios
