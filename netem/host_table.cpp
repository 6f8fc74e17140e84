#include "netem/host_table.hpp"

#include "kernels/base/digest.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/make_actor.hpp>

#include <algorithm>
#include <span>

namespace shoal::netem {

namespace {

const caf::node_id::default_data* data_of(const caf::node_id& node) {
  return node ? dynamic_cast<const caf::node_id::default_data*>(&*node) : nullptr;
}

} // namespace

// -- node ids -------------------------------------------------------------------------------------

caf::node_id host_table::node_of(std::string_view identity, std::uint32_t incarnation) {
  const auto hash = hash_of(std::as_bytes(std::span(identity)));
  caf::node_id::default_data::host_id_type host;
  std::copy_n(hash.bytes.begin(), host.size(), host.begin());
  return caf::node_id{// CAF takes process id 0 for an invalid node
                      caf::make_counted<caf::node_id::default_data>(incarnation + 1, host)};
}

/// CAF takes a process id or a host id of zeros for an invalid node.
bool host_table::is_ours(const caf::node_id& node) {
  const auto* id = data_of(node);
  return id != nullptr && id->valid();
}

std::uint32_t host_table::incarnation_in(const caf::node_id& node) {
  const auto* id = data_of(node);
  return id != nullptr ? id->process_id() - 1 : 0;
}

caf::node_id host_table::first_of(const caf::node_id& node) {
  const auto* id = data_of(node);
  return id != nullptr
             ? caf::node_id{caf::make_counted<caf::node_id::default_data>(1, id->host_id())}
             : node;
}

// -- hosts ----------------------------------------------------------------------------------------

host_index host_table::add(host_state made) {
  hosts_.push_back(std::move(made));
  return static_cast<host_index>(hosts_.size() - 1);
}

host_table::machine_state& host_table::of(machine_index machine) {
  if (machine >= machines_.size()) machines_.resize(std::size_t{machine} + 1);
  return machines_[machine];
}

std::uint32_t host_table::next_incarnation(machine_index machine,
                                           std::optional<std::uint32_t> given) {
  auto& m = of(machine);
  const auto incarnation = given.value_or(m.incarnations);
  m.incarnations = incarnation + 1;
  return incarnation;
}

host_index host_table::find(const caf::node_id& node) const {
  const auto found = by_node_.find(node);
  return found != by_node_.end() ? found->second : no_host;
}

std::optional<machine_index> host_table::machine_of(const caf::node_id& first) const {
  const auto found = machines_by_node_.find(first);
  return found != machines_by_node_.end() ? std::optional(found->second) : std::nullopt;
}

// -- actors and their addresses -------------------------------------------------------------------

void host_table::born(host_index index, const caf::strong_actor_ptr& actor) {
  auto& host = hosts_[index];
  const auto ordinal = host.next_ordinal++;
  actors_[actor->id()] = {{index, ordinal}, nullptr};
  host.actors.emplace(ordinal, actor);
}

std::optional<host_table::ended_actor> host_table::ended(caf::actor_id id) {
  auto* found = actors_.find(id);
  if (found == nullptr) return std::nullopt;
  ended_actor out{std::move(*found), nullptr};
  actors_.erase(id);
  auto& actors = hosts_[out.what.where.host].actors;
  if (const auto actor = actors.find(out.what.where.ordinal); actor != actors.end()) {
    out.actor = std::move(actor->second);
    actors.erase(actor);
  }
  return out;
}

caf::strong_actor_ptr host_table::make_port(const caf::strong_actor_ptr& actor, host_index host,
                                            std::uint32_t ordinal) {
  caf::actor_config config;
  return caf::make_actor<port, caf::strong_actor_ptr>(caf::actor_id{ordinal} + 1, hosts_[host].node,
                                                      system_, config, link_, actor, host, ordinal);
}

caf::strong_actor_ptr host_table::port_of(const caf::strong_actor_ptr& actor) {
  auto* found = actors_.find(actor->id());
  if (found == nullptr) return nullptr;
  if (!found->port) found->port = make_port(actor, found->where.host, found->where.ordinal);
  return found->port;
}

caf::strong_actor_ptr host_table::port_at(host_index index, std::uint32_t ordinal,
                                          std::vector<caf::strong_actor_ptr>& dropped) {
  auto& host = hosts_[index];
  if (!host.elsewhere)
    if (const auto found = host.actors.find(ordinal); found != host.actors.end())
      return port_of(found->second);
  if (const auto found = host.ports.find(ordinal); found != host.ports.end()) return found->second;
  auto out = make_port(nullptr, index, ordinal);
  if (host.elsewhere && host.alive) {
    if (host.ports.size() >= host.collect_at) collect_unused_ports(host, dropped);
    host.ports.emplace(ordinal, out);
  }
  return out;
}

void host_table::collect_unused_ports(host_state& host,
                                      std::vector<caf::strong_actor_ptr>& dropped) {
  std::erase_if(host.ports, [&](auto& entry) {
    if (entry.second->strong_refs != 1 || !netem::port_at(entry.second).observers().empty())
      return false;
    dropped.push_back(std::move(entry.second));
    return true;
  });
  host.collect_at = std::max<std::size_t>(64, 2 * host.ports.size());
}

} // namespace shoal::netem
