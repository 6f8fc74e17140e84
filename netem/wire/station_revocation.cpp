#include "netem/wire/station.hpp"

#include <fmt/format.h>

namespace shoal::netem::wire {

void station::end_if_revoked(const link_ptr& of) {
  if (of->relayed) return;
  const auto why = revoked_.revoked(of->pipes[0].through->certificate(), utc());
  if (!why) return;
  all_->count(name_of(refusal::revoked));
  end(of, *why);
}

void station::send_revocation_list(const link_ptr& to) {
  if (auto list = revoked_.newest_list_frame()) to->send(false, std::move(*list), now());
}

void station::revocation_list_changed(const link_ptr& from, const std::string& text) {
  revoked_.adopt();
  const auto links = state_.lock()->links.up();
  if (all_->options.on_revocation_list)
    all_->options.on_revocation_list(host_,
                                     fmt::format("revocation list {} {}", revoked_.number(), text));
  for (const auto& each : links) end_if_revoked(each);
  for (const auto& each : links)
    if (each != from && each->up && !each->closed) send_revocation_list(each);
}

void station::revocation_list_came(const link_ptr& of, const std::string& pem) {
  std::string detail;
  switch (revoked_.offer(pem, detail)) {
  case revocation_list_news::taken:
    return revocation_list_changed(
        of, fmt::format("came from {}{}", of->theirs.name,
                        detail.empty() ? "" : "; it cannot be kept: " + detail));
  case revocation_list_news::known:
    return;
  case revocation_list_news::old:
    return all_->count("old_list");
  case revocation_list_news::forged:
    return all_->count("forged_list");
  }
}

} // namespace shoal::netem::wire
