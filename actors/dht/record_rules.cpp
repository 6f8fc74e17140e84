#include "actors/dht/record_rules.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>

namespace shoal::actors {

namespace {

struct named_rule {
  std::string_view prefix;
  bool whole; // the key is the prefix
  record_rule rule;
};

using namespace std::chrono_literals;

// Peers renew progress records every few seconds, and a round takes minutes. A shard's record lives
// for a minute by default.
// An inference server renews its record every 20 seconds by default.
// Servers and trainers of experts renew theirs as often, and the hosts of a pipeline more often.
constexpr std::array<named_rule, 9> rules{{
    {"progress", true, {10min, true, record_rule::subkey::peer}},
    {"round.", false, {1h, true, record_rule::subkey::peer}},
    {"servers.", false, {10min, true, record_rule::subkey::peer}},
    {"experts.", false, {10min, true, record_rule::subkey::peer}},
    {"expert_hosts.", false, {10min, true, record_rule::subkey::peer}},
    {"expert_trainers.", false, {10min, true, record_rule::subkey::peer}},
    {"pipeline.", false, {10min, true, record_rule::subkey::peer}},
    {"revival.", false, {10min, true, record_rule::subkey::peer}},
    {"data.shard", true, {1h, true, record_rule::subkey::ends_with_peer}},
}};
constexpr record_rule other_keys{24h, false, record_rule::subkey::any};

} // namespace

const record_rule& rule_of(std::string_view key) {
  for (const auto& one : rules)
    if (one.whole ? key == one.prefix : key.starts_with(one.prefix)) return one.rule;
  return other_keys;
}

bool is_subkey_of(record_rule::subkey form, std::string_view subkey, peer_id peer) {
  switch (form) {
  case record_rule::subkey::any:
    return true;
  case record_rule::subkey::peer:
    return subkey == fmt::format("{:016x}", peer);
  case record_rule::subkey::ends_with_peer:
    return subkey.ends_with(fmt::format("#{:x}", peer));
  }
  return false;
}

} // namespace shoal::actors
