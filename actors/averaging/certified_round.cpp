#include "actors/averaging/certified_round.hpp"

#include "actors/averaging/certificate.hpp"
#include "actors/host.hpp"

#include <utility>

namespace shoal::actors {

std::vector<member_certificate> admissions_of(const round_certificate& of, const host& here) {
  std::vector<member_certificate> out;
  for (const auto& vote : of.votes) {
    const auto& key = of.roster.members[vote.member].key;
    if (auto text = here.certificate_of(key); !text.empty()) out.push_back({key, std::move(text)});
  }
  return out;
}

certified_round sent_form(const round_certificate& of) {
  certified_round out{of.roster, static_cast<std::uint8_t>(of.second ? 1 : 0), of.version, of.votes,
                      of.declines};
  out.roster.boundaries.clear();
  return out;
}

std::shared_ptr<const round_certificate> certificate_of(const certified_round& round) {
  auto out = std::make_shared<round_certificate>();
  out->roster = round.roster;
  out->second = round.second != 0;
  out->version = round.version;
  out->votes = round.votes;
  out->declines = round.declines;
  return out;
}

bool sensible(const certified_round& round) {
  const auto count = round.roster.members.size();
  return round.votes.size() <= count && round.declines.size() <= count;
}

} // namespace shoal::actors
