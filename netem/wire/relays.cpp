#include "netem/wire/relays.hpp"

namespace shoal::netem::wire {

void relays::passed(const node_key& from, const node_key& to, std::uint64_t link,
                    std::uint64_t bytes) {
  used_ += bytes;
  passing_.insert({from, to, link});
}

void relays::ended(const node_key& one, const node_key& other, std::uint64_t link) {
  passing_.erase({one, other, link});
  passing_.erase({other, one, link});
}

std::vector<relays::far_end> relays::lost(const node_key& node) {
  std::vector<far_end> out;
  std::erase_if(passing_, [&](const passing& each) {
    if (each.from != node && each.to != node) return false;
    out.push_back({each.from == node ? each.to : each.from, each.link});
    return true;
  });
  return out;
}

} // namespace shoal::netem::wire
