#include "scenarios/observe/traffic_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {

void traffic_table::place(std::uint32_t number, std::string host, const std::string& region) {
  if (number >= machines_.size()) machines_.resize(number + 1);
  machine& out = machines_[number];
  out.known = true;
  out.name = std::move(host);
  const auto found = std::find(regions_.begin(), regions_.end(), region);
  out.region = static_cast<std::uint32_t>(found - regions_.begin());
  if (found == regions_.end()) regions_.push_back(region);
}

void traffic_table::add(std::uint32_t from, std::uint32_t to, const char* type,
                        std::uint64_t bytes) {
  auto kind = std::find_if(types_.begin(), types_.end(),
                           [&](const auto& one) { return one.first == type; });
  if (kind == types_.end()) kind = types_.insert(types_.end(), {type, class_of_(type)});
  const std::uint8_t column = kind->second;
  if (kind != types_.begin())
    std::iter_swap(kind, std::prev(kind)); // frequent types move to the front
  const std::uint32_t region = machines_[to].region;
  machine& sender = machines_[from];
  if (region >= sender.to.size()) sender.to.resize(region + 1);
  sender.to[region][column & 3] += bytes;
}

void traffic_table::tell(const std::function<void(const sent_bytes&)>& each) const {
  for (const machine& from : machines_)
    for (std::size_t region = 0; region < from.to.size(); ++region)
      if (from.to[region] != std::array<std::uint64_t, 4>{})
        each({from.name, regions_[from.region], regions_[region], from.to[region]});
}

std::string traffic_table::csv() const {
  std::string out = "host,region,to_region,data,averaging,state,control\n";
  tell([&](const sent_bytes& row) {
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{}\n", row.host, row.region,
                   row.to_region, row.bytes[0], row.bytes[1], row.bytes[2], row.bytes[3]);
  });
  return out;
}

} // namespace shoal::scenarios
