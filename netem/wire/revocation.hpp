// How revocation lists spread: each host tells the number of its list, and whoever has a newer list
// sends it. A new list counts for open links as well.
#pragma once

#include "netem/wire/admission.hpp"
#include "netem/wire/frames.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shoal::netem::wire {

/// Longer lists (about ten thousand certificates) do not travel in frames.
inline constexpr std::size_t longest_list = std::size_t{512} << 10; // bytes

/// Thread safety: all.
class revocation {
public:
  /// `admits`: null without keys, and then nothing is revoked.
  explicit revocation(std::shared_ptr<const admission> admits);

  bool enabled() const noexcept { return admits_ != nullptr; }
  /// The number of the list by which the links were checked last.
  std::uint64_t number() const noexcept { return number_; }
  /// There is a newer list on this machine.
  bool is_behind() const;
  /// The links are going to be checked by the newest list.
  void adopt();
  /// Whether a host whose list has that number lacks something.
  bool is_news_to(std::uint64_t their_number) const noexcept {
    return enabled() && their_number < number_;
  }
  /// Why that certificate is revoked; nothing if it is not.
  std::optional<std::string> revoked(const std::string& certificate, std::int64_t utc_ns) const;
  /// The newest list; nothing if it is too long.
  std::optional<frame> list_frame() const;
  /// Another host sent its list. Requires: enabled.
  list_news offer(const std::string& pem, std::string& detail) const {
    return admits_->offer(pem, detail);
  }

private:
  const std::shared_ptr<const admission> admits_;
  std::atomic<std::uint64_t> number_{0};
};

} // namespace shoal::netem::wire
