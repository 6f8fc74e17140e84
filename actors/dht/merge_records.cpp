#include "actors/dht/merge_records.hpp"

#include "actors/dht/signed_record.hpp"

#include <algorithm>

namespace shoal::actors {

std::vector<shared<record>> merge_records(const std::string& key, const record_store& kept,
                                          const record_store& read, const own_records& own,
                                          std::int64_t utc_ns, bool expired_too) {
  std::vector<const shared<signed_record>*> all;
  const auto add = [&](const shared<signed_record>& what) {
    if (what->entry.expires_utc_ns > utc_ns || expired_too) all.push_back(&what);
  };
  // Each source is sorted.
  const auto merge_from = [&](std::size_t begin) {
    if (begin == 0 || begin == all.size()) return;
    std::inplace_merge(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(begin), all.end(),
                       [](const auto* a, const auto* b) {
                         const auto order = (*a)->entry.subkey.compare((*b)->entry.subkey);
                         return order != 0 ? order < 0 : is_newer(**a, **b);
                       });
  };
  kept.for_each(key, add);
  const auto read_begin = all.size();
  read.for_each(key, add);
  merge_from(read_begin);
  const auto own_begin = all.size();
  own.for_each(key, add);
  merge_from(own_begin);

  std::vector<shared<record>> out;
  out.reserve(all.size());
  const signed_record* before = nullptr;
  for (const auto* what : all) {
    const auto& each = **what;
    const bool newest = before == nullptr || before->entry.subkey != each.entry.subkey;
    before = &each;
    if (newest && each.withdrawn == 0) out.emplace_back(*what, each.entry);
  }
  return out;
}

} // namespace shoal::actors
