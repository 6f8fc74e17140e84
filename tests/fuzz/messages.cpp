// Any bytes as a message of every type: refused, or a message that is encoded to bytes which mean
// the same. The input says which type it is taken for, how much of it stands beside the binary
// form, and the rest.
#include "actors/messages.hpp"

#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "netem/wire/message_codec.hpp"
#include "tests/fuzz/targets.hpp"

#include <caf/actor_system.hpp>

#include <array>
#include <cstring>
#include <memory>

namespace shoal::fuzz {

namespace {

constexpr auto types = std::to_array<std::string_view>({"whole_part",
                                                        "whole_mean",
                                                        "record",
                                                        "store",
                                                        "withdraw",
                                                        "lookup",
                                                        "found",
                                                        "serve",
                                                        "introduced",
                                                        "link_lost",
                                                        "contact",
                                                        "signed_record",
                                                        "nodes_query",
                                                        "records_query",
                                                        "query_answer",
                                                        "record_put",
                                                        "put_receipt",
                                                        "sample_request",
                                                        "samples",
                                                        "samples_returned",
                                                        "commit_entry",
                                                        "commit",
                                                        "commit_received",
                                                        "lease_lost",
                                                        "member_info",
                                                        "join_request",
                                                        "join_accepted",
                                                        "join_rejected",
                                                        "join_withdrawn",
                                                        "group_begun",
                                                        "member_declined",
                                                        "part_chunk",
                                                        "reduced_chunk",
                                                        "chunk_received",
                                                        "part_query",
                                                        "part_claim",
                                                        "part_answer",
                                                        "part_wanted",
                                                        "chunk_range",
                                                        "member_ready",
                                                        "member_finished",
                                                        "state_request",
                                                        "state_offer",
                                                        "state_refused",
                                                        "state_hold",
                                                        "state_chunk_request",
                                                        "state_chunk",
                                                        "work_done",
                                                        "tick",
                                                        "address_query",
                                                        "address_answer",
                                                        "dial_request",
                                                        "dial_answer",
                                                        "dialled",
                                                        "greeting",
                                                        "gossip_offer",
                                                        "gossip_answer",
                                                        "push_share",
                                                        "push_received",
                                                        "ledger_row",
                                                        "replica_info",
                                                        "replica_hello",
                                                        "ledger_update",
                                                        "ledger_received",
                                                        "not_primary",
                                                        "member_signature",
                                                        "certificate_wanted",
                                                        "certificate_given",
                                                        "part_versions",
                                                        "chain_request",
                                                        "chain_answer",
                                                        "owner_certificate",
                                                        "evidence",
                                                        "no_such_type",
                                                        ""});

/// The environment in which messages are decoded: a system without actors, and a network without
/// hosts.
struct world {
  world() : config(netem::time_mode::virtual_time, 1) {
    actors::register_messages(config);
    system = std::make_unique<caf::actor_system>(config);
    system->await_actors_before_shutdown(false);
    netem::fabric_options options;
    options.classify = [](const caf::type_erased_tuple&) { return netem::message_class{}; };
    net = std::make_unique<netem::fabric>(*system, std::move(options));
  }
  ~world() {
    net.reset();
    system.reset();
  }
  netem::system_config config;
  std::unique_ptr<caf::actor_system> system;
  std::unique_ptr<netem::fabric> net;
};

/// The current world. Messages may name new hosts, which the network keeps, so a new world
/// replaces it now and then.
world& now() {
  // The last world is never freed: libraries that it uses may end before it at the process's end.
  static auto& current = *new std::unique_ptr<world>;
  static int used = 0;
  if (!current || ++used == 4096) {
    current.reset();
    current = std::make_unique<world>();
    used = 0;
  }
  return *current;
}

payload joined(const std::vector<payload>& parts) {
  std::vector<std::byte> all;
  for (const auto& each : parts)
    if (each.is_size_only())
      all.resize(all.size() + each.size());
    else
      all.insert(all.end(), each.bytes().begin(), each.bytes().end());
  return payload{std::move(all)};
}

} // namespace

void messages(bytes input) {
  front from(input);
  const auto which = from.byte();
  const std::size_t beside_size = from.two_bytes();
  std::vector<std::byte> binary;
  std::string type;
  if (which < 2 * types.size()) {
    type = "shoal::" + std::string(types[which % types.size()]);
    binary.resize(2 + 1 + type.size()); // no number, but a name
    binary[2] = static_cast<std::byte>(type.size());
    std::memcpy(binary.data() + 3, type.data(), type.size());
    binary.erase(binary.begin(), binary.begin() + 2);
  }
  // Beside stand as many bytes as were asked for, whatever they are: so large payloads take small
  // inputs.
  const payload beside{std::vector<std::byte>(beside_size, std::byte{which})};
  const auto rest = from.rest();
  binary.insert(binary.end(), rest.begin(), rest.end());

  auto& in = now();
  const auto acceptable = [which](std::string_view name) {
    return which % 2 == 0 ? actors::goes_between_hosts(name) : name.starts_with("shoal::");
  };
  auto first = netem::wire::decode(*in.system, *in.net, binary, beside, acceptable);
  if (!first) return must(!first.error().empty(), "what is wrong is said");
  const std::string name = actors::kind_of(first->content()).name;
  must(name != "?" && (type.empty() || type == "shoal::" + name),
       "a message of the type that it says");
  const auto once = netem::wire::encode(*in.system, first->content());
  must(once.beside_bytes() <= beside.size(), "nothing is beside it that did not come");
  const auto there = std::as_bytes(std::span(once.binary));
  auto second = netem::wire::decode(*in.system, *in.net, there, joined(once.beside), acceptable);
  must(second.ok(), "what was encoded can be decoded");
  const auto twice = netem::wire::encode(*in.system, second->content());
  must(twice.binary == once.binary && twice.beside.size() == once.beside.size(),
       "it means the same");
}

} // namespace shoal::fuzz
