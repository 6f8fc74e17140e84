// The admission check of a swarm, and the bans of this process beside it. A banned member is
// refused where its certificate is checked, so nothing that it sends is read.
#pragma once

#include "netem/wire/admission.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace shoal::netem::wire {

class admission_with_bans final : public admission {
public:
  /// `banned`: whether the owner of this key (32 bytes) must not take part. Requires: not empty.
  admission_with_bans(std::shared_ptr<const admission> admits,
                      std::function<bool(const std::string& identity)> banned)
      : admits_(std::move(admits)), banned_(std::move(banned)) {}

  refusal check(const std::string& certificate, std::int64_t utc_ns, certified_member& who,
                std::string& detail) const override {
    const auto said = admits_->check(certificate, utc_ns, who, detail);
    if (said != refusal::none || !banned_(who.identity)) return said;
    detail = "this host has a proof against the key of " + who.name;
    return refusal::banned;
  }
  std::uint64_t revocation_list_number() const override {
    return admits_->revocation_list_number();
  }
  std::string revocation_list_pem() const override { return admits_->revocation_list_pem(); }
  revocation_list_news offer(const std::string& list, std::string& detail) const override {
    return admits_->offer(list, detail);
  }

private:
  const std::shared_ptr<const admission> admits_;
  const std::function<bool(const std::string& identity)> banned_;
};

} // namespace shoal::netem::wire
