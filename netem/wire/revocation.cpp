#include "netem/wire/revocation.hpp"

namespace shoal::netem::wire {

revocation::revocation(std::shared_ptr<const admission> admits)
    : admits_(std::move(admits)), number_(admits_ ? admits_->revocation_list_number() : 0) {}

bool revocation::is_behind() const {
  return enabled() && admits_->revocation_list_number() > number_;
}

void revocation::adopt() {
  number_ = admits_->revocation_list_number();
}

std::optional<std::string> revocation::revoked(const std::string& certificate,
                                               std::int64_t utc_ns) const {
  certified_member who;
  std::string detail;
  if (!enabled() || admits_->check(certificate, utc_ns, who, detail) != refusal::revoked) return {};
  return detail;
}

std::optional<frame> revocation::newest_list_frame() const {
  const auto pem = admits_->revocation_list_pem();
  if (pem.size() > longest_revocation_list) return {};
  return frame_writer(frame_kind::revocation_list).put(std::string_view(pem)).done();
}

} // namespace shoal::netem::wire
