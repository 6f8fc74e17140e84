#include "actors/trust/beacon.hpp"

#include "actors/trust/identity.hpp"

namespace shoal::actors {

namespace {

void add_key(hasher& to, const key256& x) {
  to.add(x.a).add(x.b).add(x.c).add(x.d);
}

} // namespace

id128 hidden(const group_id& group, std::uint32_t member, const key256& secret) {
  auto out = statement("shoal.secret");
  out.add(group.high).add(group.low).add(member);
  add_key(out, secret);
  return id128::from(out.finish());
}

void beacon::commit(std::uint32_t member, const id128& hidden_secret) {
  if (member < hidden_.size() && !hidden_[member]) hidden_[member] = hidden_secret;
}

bool beacon::reveal(std::uint32_t member, const key256& secret) {
  if (member >= hidden_.size() || hidden_[member] != hidden(group_, member, secret)) return false;
  secrets_[member] = secret;
  return true;
}

std::vector<std::uint32_t> beacon::missing() const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < hidden_.size(); ++i)
    if (hidden_[i] && !secrets_[i]) out.push_back(i);
  return out;
}

digest beacon::value() const {
  auto out = statement("shoal.random");
  out.add(group_.high).add(group_.low);
  for (std::uint32_t i = 0; i < secrets_.size(); ++i)
    if (secrets_[i]) {
      out.add(i);
      add_key(out, *secrets_[i]);
    }
  return out.finish();
}

} // namespace shoal::actors
