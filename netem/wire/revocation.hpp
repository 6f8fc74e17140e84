// Spreads revocation lists. Each host tells the number of its list, and a host with a newer list
// sends it. A new list takes effect on open links as well.
#pragma once

#include "netem/wire/admission.hpp"
#include "netem/wire/frames.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shoal::netem::wire {

/// Frames do not carry longer lists (about ten thousand certificates).
inline constexpr std::size_t longest_revocation_list = std::size_t{512} << 10; // bytes

/// Thread safety: all.
class revocation {
public:
  /// `admits`: null without keys; then no certificate is revoked.
  explicit revocation(std::shared_ptr<const admission> admits);

  bool enabled() const noexcept { return admits_ != nullptr; }
  /// The number of the list that the links were last checked against.
  std::uint64_t number() const noexcept { return number_; }
  /// True if this machine has a newer list than number().
  bool is_behind() const;
  /// Sets number() to the newest list, before the caller checks the links against it.
  void adopt();
  /// True if a host whose list has that number needs the newest list.
  bool is_news_to(std::uint64_t their_number) const noexcept {
    return enabled() && their_number < number_;
  }
  /// The reason why that certificate is revoked, or nothing if it is not.
  std::optional<std::string> revoked(const std::string& certificate, std::int64_t utc_ns) const;
  /// A frame with the newest list, or nothing if the list is too long.
  std::optional<frame> newest_list_frame() const;
  /// Takes the list of another host. Requires: enabled().
  revocation_list_news offer(const std::string& pem, std::string& detail) const {
    return admits_->offer(pem, detail);
  }

private:
  const std::shared_ptr<const admission> admits_;
  std::atomic<std::uint64_t> number_{0};
};

} // namespace shoal::netem::wire
