#include "actors/messages.hpp"

#include "actors/all_messages.hpp"
#include "actors/message_registry.hpp"
#include "kernels/base/check.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/type_erased_tuple.hpp>

#include <deque>
#include <string>
#include <typeinfo>
#include <unordered_map>

namespace shoal::actors {

namespace {

constexpr std::string_view wire_prefix = "shoal::";

/// All known message types, with an index by name.
class registry {
public:
  registry() { add(entries_of(all_messages{})); }

  void add(const std::vector<message_entry>& entries) {
    for (const auto& entry : entries) {
      const auto known = by_name_.find(entry.name);
      if (known != by_name_.end()) {
        SHOAL_CHECK(*known->second->type == *entry.type, "no two message types have the same name");
        continue;
      }
      entries_.push_back(entry);
      by_name_.emplace(entries_.back().name, &entries_.back());
    }
  }
  const std::deque<message_entry>& entries() const noexcept { return entries_; }
  const message_entry* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

private:
  // A deque, because the index points into it.
  std::deque<message_entry> entries_;
  std::unordered_map<std::string_view, const message_entry*> by_name_;
};

registry& known_messages() {
  static registry all;
  return all;
}

message_kind look_for_kind(const caf::type_erased_tuple& content) {
  for (const auto& entry : known_messages().entries())
    if (entry.matches(content)) return {entry.counted_as, entry.name, entry.bytes};
  return {};
}

} // namespace

void add_messages(const std::vector<message_entry>& entries) {
  known_messages().add(entries);
}

void register_messages(caf::actor_system_config& config) {
  for (const auto& entry : known_messages().entries())
    entry.add_to(config, std::string(wire_prefix) + entry.name);
}

message_kind kind_of(const caf::type_erased_tuple& content) {
  // Every message that crosses hosts is looked up here, so each thread caches the answer by the
  // address of its type_info. The same type may have other addresses in other libraries.
  const std::type_info* type = content.size() == 1 ? content.type(0).second : nullptr;
  if (type == nullptr) return look_for_kind(content);
  thread_local std::unordered_map<const std::type_info*, message_kind> cache;
  const auto [found, fresh] = cache.try_emplace(type);
  if (fresh) found->second = look_for_kind(content);
  return found->second;
}

std::string_view name_of(const caf::message& content) {
  if (content.empty()) return {};
  const auto kind = kind_of(*content.cvals());
  return kind.bytes == nullptr ? std::string_view{} : kind.name;
}

std::optional<caf::message> with_fields(const caf::message& content, field_visitor& by) {
  const auto* entry = known_messages().find(name_of(content));
  if (entry == nullptr) return std::nullopt;
  return entry->with_fields(*content.cvals(), by);
}

traffic traffic_of(std::string_view name) {
  const auto* entry = known_messages().find(name);
  return entry == nullptr ? traffic::control : entry->counted_as;
}

bool goes_between_hosts(std::string_view wire_name) {
  if (!wire_name.starts_with(wire_prefix)) return false;
  const auto* entry = known_messages().find(wire_name.substr(wire_prefix.size()));
  return entry != nullptr && entry->scope == scope::remote;
}

} // namespace shoal::actors
