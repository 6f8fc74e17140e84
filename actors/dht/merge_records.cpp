#include "actors/dht/merge_records.hpp"

#include "actors/dht/record_rules.hpp"
#include "actors/dht/signed_record.hpp"

#include <algorithm>
#include <unordered_map>

namespace shoal::actors {

namespace {

using record_list = std::vector<const shared<signed_record>*>;

// An owner that has restarted has another sub-key. One source may still have the earlier record.

void keep_last_of_each_owner(record_list& all) {
  const auto hash = [](const key256& key) { return static_cast<std::size_t>(key.a); };
  std::unordered_map<key256, const signed_record*, decltype(hash)> last(all.size(), hash);
  for (const auto* what : all) {
    auto& newest = last[(*what)->entry.owner];
    if (newest == nullptr || is_newer(**what, *newest)) newest = &**what;
  }
  std::erase_if(all, [&](const auto* what) {
    return last.at((*what)->entry.owner)->entry.subkey != (*what)->entry.subkey;
  });
}

/// The same for one owner, which takes a tenth of the time.
void keep_last_of(const key256& owner, record_list& all) {
  const signed_record* newest = nullptr;
  for (const auto* what : all)
    if ((*what)->entry.owner == owner && (newest == nullptr || is_newer(**what, *newest)))
      newest = &**what;
  std::erase_if(all, [&](const auto* what) {
    return (*what)->entry.owner == owner && newest->entry.subkey != (*what)->entry.subkey;
  });
}

} // namespace

std::vector<shared<record>> merge_records(const std::string& key, const record_store& kept,
                                          const record_store& read, const own_records& own,
                                          std::int64_t utc_ns, bool expired_too) {
  record_list all;
  const auto add = [&](const shared<signed_record>& what) {
    if (what->entry.expires_utc_ns > utc_ns || expired_too) all.push_back(&what);
  };
  // Each source is sorted.
  const auto merge_from = [&](std::size_t begin) {
    if (begin == 0 || begin == all.size()) return;
    std::inplace_merge(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(begin), all.end(),
                       [](const auto* a, const auto* b) {
                         const auto order = (*a)->entry.subkey.compare((*b)->entry.subkey);
                         if (order != 0) return order < 0;
                         if ((*a)->entry.owner != (*b)->entry.owner)
                           return (*a)->entry.owner < (*b)->entry.owner;
                         return is_newer(**a, **b);
                       });
  };
  kept.for_each(key, add);
  const auto read_begin = all.size();
  read.for_each(key, add);
  merge_from(read_begin);
  const auto own_begin = all.size();
  own.for_each(key, add);
  const auto* mine = all.size() > own_begin ? all.back() : nullptr;
  merge_from(own_begin);

  if (rule_of(key).one_per_owner) {
    // One store has one record of each owner.
    if (read_begin > 0 && own_begin > read_begin)
      keep_last_of_each_owner(all);
    else if (mine != nullptr)
      keep_last_of((*mine)->entry.owner, all);
  }
  std::vector<shared<record>> out;
  out.reserve(all.size());
  const signed_record* before = nullptr;
  for (const auto* what : all) {
    const auto& each = **what;
    const bool newest = before == nullptr || before->entry.subkey != each.entry.subkey ||
                        before->entry.owner != each.entry.owner;
    before = &each;
    if (newest && each.withdrawn == 0) out.emplace_back(*what, each.entry);
  }
  return out;
}

} // namespace shoal::actors
