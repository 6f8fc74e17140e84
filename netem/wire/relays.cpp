#include "netem/wire/relays.hpp"

namespace shoal::netem::wire {

bool relays::passed(const node_key& from, const node_key& to, std::uint64_t link,
                    std::uint64_t bytes) {
  if (!passing_.contains({from, to, link})) {
    auto& links = links_of_[from];
    if (links >= most_links_relayed) return false;
    ++links;
    passing_.insert({from, to, link});
  }
  used_ += bytes;
  return true;
}

void relays::forget(const node_key& sender) {
  const auto found = links_of_.find(sender);
  if (found != links_of_.end() && --found->second == 0) links_of_.erase(found);
}

void relays::ended(const node_key& one, const node_key& other, std::uint64_t link) {
  if (passing_.erase({one, other, link}) > 0) forget(one);
  if (passing_.erase({other, one, link}) > 0) forget(other);
}

std::vector<relays::far_end> relays::lost(const node_key& node) {
  std::vector<far_end> out;
  std::erase_if(passing_, [&](const passing& each) {
    if (each.from != node && each.to != node) return false;
    out.push_back({each.from == node ? each.to : each.from, each.link});
    forget(each.from);
    return true;
  });
  return out;
}

} // namespace shoal::netem::wire
