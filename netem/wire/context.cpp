#include "netem/wire/context.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"
#include "netem/coordinator.hpp"

#include <algorithm>
#include <cstring>

namespace shoal::netem::wire {

context::context(wire_options given) : options(std::move(given)) {
  const auto hash = hash_of(std::as_bytes(std::span(options.scenario)));
  std::memcpy(scenario.data(), hash.bytes.data(), scenario.size());
}

duration context::now() const {
  return clock->now();
}

void context::count(std::string_view why) {
  std::lock_guard guard(mutex_);
  ++refused_[std::string(why)];
}

std::string context::address_of(host_index host) const {
  std::lock_guard guard(mutex_);
  const auto found = addresses_.find(host);
  return found == addresses_.end() ? std::string{} : found->second;
}

void context::set_address(host_index host, const std::string& address) {
  std::lock_guard guard(mutex_);
  addresses_[host] = address;
}

void context::add_counts(network_counts& into) const {
  into.links_made = made;
  into.links_lost = lost;
  into.frames_in = frames_in;
  into.frames_out = frames_out;
  into.bytes_in = bytes_in;
  into.bytes_out = bytes_out;
  into.messages_lost = messages_lost;
  into.relayed_bytes = relayed_bytes;
  into.links_open = linked;
  into.held_back = held_back;
  into.unhandled_bytes = unhandled + *incomplete;
  for (const auto name : gate_refusal_names) into.connections_refused[std::string(name)] = 0;
  std::lock_guard guard(mutex_);
  const auto of = [this](std::string_view name) {
    const auto found = refused_.find(std::string(name));
    return found == refused_.end() ? 0 : found->second;
  };
  for (const auto name : refusal_names)
    if (name != "none") into.connections_refused[std::string(name)] = of(name);
  for (const auto name : frame_refusal_names) into.frames_refused[std::string(name)] = of(name);
}

node_key key_of(const caf::node_id& node) {
  node_key out;
  const auto* id = node ? dynamic_cast<const caf::node_id::default_data*>(&*node) : nullptr;
  SHOAL_CHECK(id != nullptr, "hosts have node ids of the fabric");
  out.incarnation = id->process_id() - 1;
  out.host = id->host_id();
  return out;
}

caf::node_id node_of_key(const node_key& key) {
  caf::node_id::default_data::host_id_type host;
  std::copy(key.host.begin(), key.host.end(), host.begin());
  return caf::node_id{caf::make_counted<caf::node_id::default_data>(key.incarnation + 1, host)};
}

} // namespace shoal::netem::wire
