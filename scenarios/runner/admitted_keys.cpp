#include "scenarios/runner/admitted_keys.hpp"

#include "actors/trust/identity.hpp"

#include <utility>

namespace shoal::scenarios {

using netem::wire::refusal;

admitted_keys::admitted_keys(std::shared_ptr<const netem::wire::admission> admits)
    : admission_(std::move(admits)), list_(admission_->revocation_list_number()) {}

bool admitted_keys::admits(const actors::key256& key, std::string_view certificate,
                           std::int64_t utc_ns) {
  if (!certificate.empty()) {
    netem::wire::certified_member who;
    std::string detail;
    const auto said = admission_->check(std::string{certificate}, utc_ns, who, detail);
    if (said == refusal::none && who.identity == actors::bytes_of(key)) {
      std::lock_guard guard(mutex_);
      known_.insert_or_assign(key, std::string{certificate});
      return true;
    }
  }
  std::lock_guard guard(mutex_);
  forget_revoked(utc_ns);
  return known_.contains(key);
}

std::string admitted_keys::certificate_of(const actors::key256& key, std::int64_t utc_ns) {
  std::lock_guard guard(mutex_);
  forget_revoked(utc_ns);
  const auto found = known_.find(key);
  return found == known_.end() ? std::string{} : found->second;
}

void admitted_keys::forget_revoked(std::int64_t utc_ns) {
  const auto newest = admission_->revocation_list_number();
  if (newest == list_) return;
  list_ = newest;
  std::erase_if(known_, [&](const auto& one) {
    netem::wire::certified_member who;
    std::string detail;
    return admission_->check(one.second, utc_ns, who, detail) == refusal::revoked;
  });
}

} // namespace shoal::scenarios
