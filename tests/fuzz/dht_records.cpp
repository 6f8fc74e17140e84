// Records of the hash table, as replicas get them. One of three owners or no owner signs a record,
// for any key. The record is then changed or not, and clocks jump. Only records that their owner
// signed are genuine, and the store keeps its promises to each owner. The input is a list of
// actions.
#include "actors/dht/record_store.hpp"
#include "actors/dht/signed_record.hpp"
#include "tests/actors/support/mini_world.hpp"
#include "tests/fuzz/targets.hpp"

#include <array>
#include <limits>
#include <map>
#include <optional>

namespace shoal::fuzz {

namespace {

using namespace actors;

constexpr std::int64_t start_utc = 1'700'000'000'000'000'000;

/// Checking a signature takes 0.1 ms, in which a thousand records are kept: two of an input, and
/// not of each.
constexpr int most_checked = 2;
bool is_signed(std::uint8_t what) {
  return (what & 0xb3) == 0x80;
}

using actors::testing::mini_host;
using owner_list = std::array<const mini_host*, 3>;

const owner_list& owners() {
  static auto& world = *new actors::testing::mini_world; // the actor system outlives all inputs
  static const owner_list all{&world.add_host("owner-0"), &world.add_host("owner-1"),
                              &world.add_host("owner-2")};
  return all;
}

bool is_genuine(const std::string& key, const signed_record& what, signature_cache* signatures) {
  return not_genuine(*owners()[0], key, what, signatures).empty();
}

std::string name(std::uint8_t which, std::size_t longest) {
  return std::string(which % 8 == 7 ? longest + which / 128 : which % 8, 'k');
}

struct share {
  std::size_t keys = 0, records = 0, bytes = 0;
};

void check_key(const record_store& store, const std::string& key) {
  std::size_t count = 0;
  store.for_each(key, [&](const shared<signed_record>& what) {
    ++count;
    const auto* found = store.find(key, what->entry.subkey, what->entry.owner);
    must(found == &*what, "what is there is found");
  });
  std::uint64_t at = 0;
  std::size_t changes = 0;
  for (;;) {
    const auto some = store.after(key, at, 3);
    must(some.records.size() <= 3, "no more than were asked for");
    changes += some.records.size();
    must(!some.more || some.sequence > at, "each answer is further");
    at = some.sequence;
    if (!some.more) break;
  }
  must(changes == count, "each record is among the changes once");
}

} // namespace

void dht_records(bytes input) {
  front from(input);
  record_limits limits;
  limits.max_keys = 5;
  limits.max_records_per_key = 6;
  limits.max_records = 12;
  limits.max_key_bytes = 16;
  limits.max_value_bytes = 32;
  limits.max_keys_per_owner = 4;
  limits.max_records_per_owner = 7;
  limits.max_records_per_owner_and_key = 3;
  limits.max_bytes_per_owner = 128;
  record_store store(limits);
  signature_cache signatures(4);
  std::int64_t utc = start_utc;
  int checked = 0;
  std::string key;
  while (!from.empty()) {
    const auto what = from.byte();
    switch (what % 4) {
    case 0:
    case 1: {
      key = name(from.byte(), limits.max_key_bytes);
      record entry;
      entry.subkey = name(from.byte(), limits.max_key_bytes);
      const auto value = from.take(from.byte() % 40);
      entry.value = payload{std::vector<std::byte>(value.begin(), value.end())};
      const auto life = from.two_bytes();
      entry.expires_utc_ns = life == 0xffff   ? std::numeric_limits<std::int64_t>::max()
                             : life == 0xfffe ? std::numeric_limits<std::int64_t>::min()
                                              : utc + (std::int64_t{life} - 100) * 10'000'000'000;
      signed_record put;
      const bool checks = is_signed(what) && checked++ < most_checked;
      if (checks) {
        put = sign_record(*owners()[what / 4 % 3], key, entry, from.byte(), (what & 64) != 0);
        must(is_genuine(key, put, &signatures) && is_genuine(key, put, &signatures),
             "what its owner signed is genuine");
        auto other = put;
        switch (from.byte() % 8) {
        case 0:
          other.version += 1;
          break;
        case 1:
          other.withdrawn ^= 1;
          break;
        case 2:
          other.entry.expires_utc_ns ^= 1;
          break;
        case 3:
          other.entry.subkey += 'x';
          break;
        case 4:
          other.entry.owner = owners()[(what / 4 + 1) % 3]->key();
          break;
        case 5:
          other.signature_s.d ^= std::uint64_t{1} << from.byte() % 64;
          break;
        case 6:
          other.entry.value = payload::size_only(entry.value.size() + 1);
          break;
        case 7:
          other.signature_r.a ^= std::uint64_t{1} << from.byte() % 64;
          break;
        }
        const auto how = from.byte();
        if (how % 3 == 0) must(!is_genuine(key + "x", put, &signatures), "nor for another key");
        must(!is_genuine(key, other, how % 3 == 1 ? nullptr : &signatures), "and nothing else is");
      } else {
        // As it would be after the check.
        put.entry = entry;
        put.version = from.byte();
        put.withdrawn = what / 64 % 2;
        put.entry.owner = owners()[what / 4 % 3]->key();
      }
      const auto wanted = store.wants(key, put, utc);
      const auto* before = store.find(key, put.entry.subkey, put.entry.owner);
      const auto known = before != nullptr ? std::optional(*before) : std::nullopt;
      const auto kept = store.put(key, put, utc);
      must(kept.ok() == wanted.ok() && (!kept || *kept == *wanted), "what is wanted is kept");
      if (!kept || !*kept) break;
      must(put.entry.expires_utc_ns > utc && put.entry.value.size() <= limits.max_value_bytes &&
               !key.empty(),
           "within the limits");
      if (known && known->entry.expires_utc_ns > utc)
        must(known->entry.owner == put.entry.owner && is_newer(put, *known),
             "only its owner replaces it");
      break;
    }
    case 2:
      utc += std::int64_t{from.two_bytes()} * 1'000'000'000 - 5'000'000'000;
      store.drop_expired(utc);
      for (const auto& each : store.keys())
        store.for_each(each, [&](const shared<signed_record>& left) {
          must(left->entry.expires_utc_ns > utc, "what has expired is gone");
        });
      break;
    default:
      if (what >= 128) store.drop_key(key);
      break;
    }
    must(store.size() <= limits.max_records && store.keys().size() <= limits.max_keys,
         "no more than may be");
  }
  std::size_t all = 0;
  std::map<key256, share> shares;
  for (const auto& each : store.keys()) {
    check_key(store, each);
    std::map<key256, std::size_t> here;
    store.for_each(each, [&](const shared<signed_record>& what) {
      ++all;
      auto& share = shares[what->entry.owner];
      ++share.records;
      share.keys += ++here[what->entry.owner] == 1 ? 1 : 0;
      share.bytes += each.size() + what->entry.subkey.size() + what->entry.value.size();
      must(here[what->entry.owner] <= limits.max_records_per_owner_and_key,
           "no more of one owner under one key than may be");
    });
  }
  for (const auto& [owner, share] : shares)
    must(share.keys <= limits.max_keys_per_owner && share.records <= limits.max_records_per_owner &&
             share.bytes <= limits.max_bytes_per_owner,
         "no more of one owner than may be");
  for (const auto* owner : owners())
    must(store.has_records_of(owner->key()) == shares.contains(owner->key()),
         "it knows whose records it has");
  must(all == store.size(), "it knows how many it has");
}

} // namespace shoal::fuzz
