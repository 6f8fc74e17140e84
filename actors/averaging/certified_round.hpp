// The certificate of a round as hosts send it to each other, with the certificates by which the
// swarm has admitted its voters.
#pragma once

#include "actors/averaging/messages.hpp"

#include <memory>
#include <string>
#include <vector>

namespace shoal::actors {

class host;
struct round_certificate;

/// A round_certificate. The roster has no boundaries, because each peer computes them.
struct certified_round {
  group_begun roster;
  std::uint8_t second = 0;
  id128 version;
  std::vector<member_signature> votes, declines;

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, certified_round& x) {
    return f(x.roster, x.second, x.version, x.votes, x.declines);
  }
};

/// The certificate by which the swarm has admitted a member's key.
struct member_certificate {
  key256 key;
  std::string text;

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, member_certificate& x) {
    return f(x.key, x.text);
  }
};

/// The certificates of the voters' keys, as far as this host has them.
std::vector<member_certificate> admissions_of(const round_certificate& of, const host& here);

certified_round sent_form(const round_certificate& of);
std::shared_ptr<const round_certificate> certificate_of(const certified_round& round);
/// True if votes and declines are not more than the members.
bool sensible(const certified_round& round);

} // namespace shoal::actors
