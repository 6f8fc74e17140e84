#include "netem/wire/local_host.hpp"

#include <fmt/format.h>

namespace shoal::netem::wire {

void local_host::end_if_revoked(const link_ptr& of) {
  // A relayed pipe shows its certificate with its first frame, and the bulk pipe's may come first.
  auto certificate = of->pipes[0].through->certificate();
  if (certificate.empty() && of->relayed) certificate = of->pipes[1].through->certificate();
  const auto why = revoked_.revoked(certificate, utc());
  if (!why) return;
  all_->count(name_of(refusal::revoked));
  end(of, *why);
}

void local_host::end_if_own_is_revoked() {
  if (all_->options.keys.certificate.empty() || !all_->options.on_refused) return;
  if (const auto why = revoked_.revoked(all_->options.keys.certificate, utc()))
    all_->options.on_refused(host_, "any host", refusal::revoked, *why, true);
}

void local_host::send_revocation_list(const link_ptr& to) {
  if (auto list = revoked_.newest_list_frame()) to->send(false, std::move(*list), now());
}

void local_host::revocation_list_changed(const link_ptr& from, const std::string& text) {
  revoked_.adopt();
  const auto links = state_.lock()->links.up();
  if (all_->options.on_revocation_list)
    all_->options.on_revocation_list(host_,
                                     fmt::format("revocation list {} {}", revoked_.number(), text));
  end_if_own_is_revoked();
  for (const auto& each : links) end_if_revoked(each);
  for (const auto& each : links)
    if (each != from && each->up && !each->closed) send_revocation_list(each);
}

void local_host::revocation_list_came(const link_ptr& of, const std::string& pem) {
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
