#include "actors/training/chain_pages.hpp"

#include "actors/averaging/certificate.hpp"
#include "actors/host.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace shoal::actors {

chain_answer page_after(const chain& own, std::span<const chain_point> locator, const host& here) {
  chain_answer out;
  const auto common = own.common(locator);
  if (!common) {
    out.lacks = 1;
    return out;
  }
  out.common = *common;
  std::size_t members = 0;
  std::map<key256, std::string> admitted;
  for (auto epoch = common->epoch + 1; epoch <= own.head().epoch; ++epoch) {
    const auto& certificate = *own.step_to(epoch)->certificate;
    members += certificate.roster.members.size();
    if (!out.steps.empty() &&
        (out.steps.size() >= most_page_steps || members > most_page_members)) {
      out.more = 1;
      break;
    }
    for (const auto& vote : certificate.votes) {
      const auto& key = certificate.roster.members[vote.member].key;
      if (const auto [at, is_new] = admitted.try_emplace(key); is_new)
        at->second = here.certificate_of(key);
    }
    out.steps.push_back(sent_form(certificate));
  }
  for (auto& [key, text] : admitted)
    if (!text.empty()) out.admitted.push_back({key, std::move(text)});
  return out;
}

bool sensible(const chain_answer& page) {
  std::size_t members = 0;
  for (const auto& step : page.steps) {
    if (!sensible(step)) return false;
    members += step.roster.members.size();
  }
  // One roster alone may be larger than the bound.
  const bool small = members <= most_page_members || page.steps.size() == 1;
  return small && page.steps.size() <= most_page_steps &&
         page.admitted.size() <= std::max(members, std::size_t{1}) &&
         (page.more == 0 || !page.steps.empty());
}

} // namespace shoal::actors
