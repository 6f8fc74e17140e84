#include "scenarios/record/rounds_file.hpp"

#include "actors/averaging/observations.hpp"
#include "actors/pipeline/observations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace shoal::scenarios {

rounds_recorder::contribution& rounds_recorder::round::of(std::uint32_t member) {
  const auto at =
      std::lower_bound(members.begin(), members.end(), member,
                       [](const contribution& a, std::uint32_t b) { return a.member < b; });
  if (at != members.end() && at->member == member) return *at;
  contribution fresh;
  fresh.member = member;
  return *members.insert(at, fresh);
}

void rounds_recorder::observe(actors::peer_id who, const actors::observation& what) {
  if (const auto* joined = actors::get_if<actors::contributed>(&what)) {
    auto& round = rounds_[joined->group];
    round.epoch = joined->epoch;
    auto& given = round.of(joined->member);
    given.peer = who;
    given.first = static_cast<std::uint32_t>(round.samples.size());
    given.count = static_cast<std::uint32_t>(joined->samples.size());
    round.samples.insert(round.samples.end(), joined->samples.begin(), joined->samples.end());
  } else if (const auto* batch = actors::get_if<actors::batch_stepped>(&what)) {
    auto& round = rounds_[batch->group];
    round.epoch = batch->epoch;
    round.parts_total = batch->hops_total;
    auto& given = round.of(static_cast<std::uint32_t>(round.members.size()));
    given.peer = who;
    given.parts = batch->hops_included;
    given.first = static_cast<std::uint32_t>(round.samples.size());
    given.count = static_cast<std::uint32_t>(batch->samples.size());
    round.samples.insert(round.samples.end(), batch->samples.begin(), batch->samples.end());
  } else if (const auto* ended = actors::get_if<actors::round_ended>(&what)) {
    if (ended->outcome == actors::outcome::failed || ended->parts.empty()) return;
    auto& round = rounds_[ended->group];
    if (round.parts_total != 0) return;
    round.epoch = ended->epoch;
    round.parts_total = static_cast<std::uint32_t>(ended->parts.size());
    for (const auto& part : ended->parts)
      for (const auto sender : part.senders) ++round.of(sender).parts;
    // By now nearly all members have contributed.
    round.members.shrink_to_fit();
    round.samples.shrink_to_fit();
  }
}

void rounds_recorder::write(std::ostream& out) const {
  std::map<std::pair<std::uint64_t, actors::group_id>, const round*> in_order;
  for (const auto& [group, one] : rounds_)
    if (one.parts_total != 0) in_order[{one.epoch, group}] = &one;
  out << rounds_header << '\n';
  for (const auto& [key, one] : in_order)
    for (const auto& given : one->members)
      for (std::uint32_t i = given.first; i < given.first + given.count; ++i)
        out << fmt::format("{},{},{},{},{},{},{}\n", key.first, key.second.hex(), given.peer,
                           one->samples[i].first, one->samples[i].count, given.parts,
                           one->parts_total);
}

result<void> rounds_recorder::write(const std::string& path) const {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (out) write(out);
  out.close();
  if (!out) return failure{path + ": cannot be written"};
  return {};
}

} // namespace shoal::scenarios
