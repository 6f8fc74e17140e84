#include "actors/data/rounds_file.hpp"

#include <fmt/format.h>

#include <fstream>

namespace shoal::actors {

void rounds_recorder::observe(peer_id who, const observation& what) {
  if (const auto* joined = std::get_if<contributed>(&what)) {
    auto& round = rounds_[joined->group];
    round.epoch = joined->epoch;
    round.members[joined->member] = {who, joined->samples};
  } else if (const auto* ended = std::get_if<round_ended>(&what)) {
    if (ended->outcome == outcome::failed || ended->parts.empty())
      return;
    auto& round = rounds_[ended->group];
    if (round.parts_total != 0)
      return;
    round.epoch = ended->epoch;
    round.parts_total = static_cast<std::uint32_t>(ended->parts.size());
    for (const auto& part : ended->parts)
      for (const auto sender : part.senders)
        ++round.parts_of[sender];
  }
}

void rounds_recorder::write(std::ostream& out) const {
  std::map<std::pair<std::uint64_t, group_id>, const round*> in_order;
  for (const auto& [group, one] : rounds_)
    if (one.parts_total != 0)
      in_order[{one.epoch, group}] = &one;
  out << rounds_header << '\n';
  for (const auto& [key, one] : in_order)
    for (const auto& [member, given] : one->members) {
      const auto at = one->parts_of.find(member);
      const auto parts = at == one->parts_of.end() ? 0 : at->second;
      for (const auto& range : given.samples)
        out << fmt::format("{},{},{},{},{},{},{}\n", key.first, key.second.hex(), given.peer,
                           range.first, range.count, parts, one->parts_total);
    }
}

result<void> rounds_recorder::write(const std::string& path) const {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (out)
    write(out);
  out.close();
  if (!out)
    return failure{path + ": cannot be written"};
  return {};
}

} // namespace shoal::actors
