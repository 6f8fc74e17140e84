#include "netem/wire/network.hpp"

#include "netem/coordinator.hpp"
#include "netem/wire/admission_with_bans.hpp"
#include "netem/wire/context.hpp"
#include "netem/wire/local_host.hpp"

#include <thread>

namespace shoal::netem::wire {

namespace {

wire_options with_bans(wire_options options) {
  if (options.admits && options.banned)
    options.admits =
        std::make_shared<admission_with_bans>(std::move(options.admits), options.banned);
  return options;
}

} // namespace

network::network(wire_options options)
    : shared_(std::make_shared<context>(with_bans(std::move(options)))) {}

network::~network() {
  close();
}

void network::use(caf::actor_system& system, fabric& net) {
  shared_->system = &system;
  shared_->net = &net;
  shared_->clock = &coordinator::of(system);
}

void network::close() {
  std::vector<std::shared_ptr<local_host>> all;
  {
    std::lock_guard guard(mutex_);
    all.swap(killed_);
    for (auto& [host, each] : hosts_) all.push_back(std::move(each));
    hosts_.clear();
  }
  for (const auto& each : all) each->close();
  // A callback that has begun holds its host, and goes on to use the fabric.
  for (const auto& each : all)
    while (each.use_count() > 1 || each->answers_requests())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

result<void> network::open(host_index host, host_options options) {
  auto made = std::make_shared<local_host>(shared_, host, std::move(options));
  if (auto done = made->open(); !done) return done;
  std::lock_guard guard(mutex_);
  hosts_[host] = std::move(made);
  return {};
}

std::shared_ptr<local_host> network::host_at(host_index host) const {
  std::lock_guard guard(mutex_);
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? nullptr : found->second;
}

address network::listens_at(host_index host) const {
  const auto at = host_at(host);
  return at ? at->listens_at() : address{};
}
void network::introduce(host_index host, const caf::actor& service) {
  if (const auto at = host_at(host)) at->introduce(service);
}
void network::join(host_index host, const address& where) {
  if (const auto at = host_at(host)) at->join(where);
}
void network::leave(host_index host) {
  const auto at = host_at(host);
  if (!at) return;
  at->leave();
  // A process that ends takes its queued frames with it, and then the others would wait for it.
  const auto limit = std::chrono::steady_clock::now() +
                     std::min<duration>(shared_->options.detection_time, std::chrono::seconds(2));
  while (at->has_links() && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}
std::vector<connected_peer> network::connected_peers(host_index host) const {
  const auto at = host_at(host);
  return at ? at->connected_peers() : std::vector<connected_peer>{};
}

network_counts network::counts() const {
  network_counts out;
  shared_->add_counts(out);
  auto all = [this] {
    std::lock_guard guard(mutex_);
    return hosts_;
  }();
  for (const auto& [host, each] : all) each->add_counts(out);
  return out;
}

void network::carry(netem::endpoint from, netem::endpoint to, caf::mailbox_element_ptr element,
                    std::uint64_t bytes, bool bulk) {
  if (const auto at = host_at(from.host)) at->carry(from, to, std::move(element), bytes, bulk);
}
void network::watch(host_index from, netem::endpoint of) {
  if (const auto at = host_at(from)) at->watch(of);
}
void network::ended(netem::endpoint of) {
  if (const auto at = host_at(of.host)) at->actor_ended(of.ordinal);
}
void network::killed(host_index host, kill_scope scope) {
  const auto at = host_at(host);
  if (!at) return;
  at->fall_silent();
  if (scope == kill_scope::machine) return;
  {
    std::lock_guard guard(mutex_);
    if (hosts_.erase(host) > 0) killed_.push_back(at);
  }
  at->close();
}

} // namespace shoal::netem::wire
