#include "actors/messages.hpp"

#include <typeinfo>
#include <unordered_map>

#include <caf/actor_system_config.hpp>
#include <caf/type_erased_tuple.hpp>

#include "actors/byte_counter.hpp"

namespace shoal::actors {

namespace {

// The one list of message types: type, traffic class.
#define SHOAL_MESSAGE_LIST(X)                                                                        \
  X(whole_part, averaging) X(whole_mean, averaging)                                                  \
  X(record, control) X(store, control) X(withdraw, control) X(lookup, control) X(found, control)     \
  X(serve, control) X(introduced, control) X(contact, control) X(signed_record, control) X(nodes_query, control) X(records_query, control)    \
  X(query_answer, control) X(record_put, control) X(put_receipt, control)                            \
  X(sample_request, control) X(samples, data) X(samples_returned, control) X(commit_entry, control)  \
  X(commit, control) X(commit_received, control) X(lease_lost, control) X(member_info, control) X(join_request, control)         \
  X(join_accepted, control) X(join_rejected, control) X(join_withdrawn, control)                     \
  X(group_begun, control) X(member_declined, control) X(part_chunk, averaging)                       \
  X(reduced_chunk, averaging) X(chunk_received, control) X(part_query, control)                      \
  X(part_claim, control) X(part_answer, control) X(part_wanted, control) X(chunk_range, control)     \
  X(member_ready, control) X(member_finished, control) X(state_request, control)                     \
  X(state_offer, state) X(state_refused, control) X(state_hold, control) X(state_chunk_request, control) \
  X(state_chunk, state) X(work_done, control) X(tick, control) X(address_query, control)             \
  X(address_answer, control) X(dial_request, control) X(dial_answer, control) X(dialled, control)     \
  X(greeting, control) X(gossip_offer, averaging) X(gossip_answer, averaging) X(push_share, averaging) \
  X(push_received, control) X(ledger_row, control) X(replica_info, control) X(replica_hello, control)          \
  X(ledger_update, control) X(ledger_received, control) X(not_primary, control)

}  // namespace

void register_messages(caf::actor_system_config& config) {
#define SHOAL_REGISTER(type, traffic_class) config.add_message_type<type>("shoal::" #type);
  SHOAL_MESSAGE_LIST(SHOAL_REGISTER)
#undef SHOAL_REGISTER
}

namespace {

template <class Message>
std::uint64_t bytes_of(const caf::type_erased_tuple& content) {
  byte_counter counter;
  // The counter only reads; inspect() predates const.
  counter(*static_cast<Message*>(const_cast<void*>(content.get(0))));
  return counter.bytes();
}

message_kind look_for_kind(const caf::type_erased_tuple& content) {
#define SHOAL_KIND(type, traffic_class) \
  if (content.match_elements<type>()) return {traffic::traffic_class, #type, bytes_of<type>};
  SHOAL_MESSAGE_LIST(SHOAL_KIND)
#undef SHOAL_KIND
  return {};
}

}  // namespace

message_kind kind_of(const caf::type_erased_tuple& content) {
  // Asked of every message that crosses hosts: by the address of its type's description, which may have others elsewhere.
  const std::type_info* type = content.size() == 1 ? content.type(0).second : nullptr;
  if (type == nullptr) return look_for_kind(content);
  thread_local std::unordered_map<const std::type_info*, message_kind> known;
  const auto [found, fresh] = known.try_emplace(type);
  if (fresh) found->second = look_for_kind(content);
  return found->second;
}

traffic traffic_of(std::string_view name) {
#define SHOAL_TRAFFIC(type, traffic_class) \
  if (name == #type) return traffic::traffic_class;
  SHOAL_MESSAGE_LIST(SHOAL_TRAFFIC)
#undef SHOAL_TRAFFIC
  return traffic::control;
}

bool goes_between_hosts(std::string_view portable_name) {
  constexpr std::string_view prefix = "shoal::";
  if (!portable_name.starts_with(prefix)) return false;
  const auto name = portable_name.substr(prefix.size());
  // What an actor says to others of its host and to itself would let a stranger act in its place.
  for (const std::string_view inside : {"store", "withdraw", "lookup", "found", "serve", "work_done", "dialled", "tick", "introduced"})
    if (name == inside) return false;
#define SHOAL_NAME(type, traffic_class) \
  if (name == #type) return true;
  SHOAL_MESSAGE_LIST(SHOAL_NAME)
#undef SHOAL_NAME
  return false;
}

}  // namespace shoal::actors
