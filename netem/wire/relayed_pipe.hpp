// A pipe of a link over a relay. Its frames travel inside frames of the link to the relay. With
// keys, the two ends protect them from the relay (end_to_end.hpp).
#pragma once

#include "netem/wire/end_to_end.hpp"
#include "netem/wire/host_link.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace shoal::netem::wire {

class relayed_pipe final : public pipe, public receive_window {
public:
  /// `protection`: null without keys.
  relayed_pipe(std::shared_ptr<host_link> over, const relayed_head& head,
               std::function<duration()> now, std::unique_ptr<end_to_end> protection)
      : over_(std::move(over)), head_(head), now_(std::move(now)), kind_(pipe_kinds[head.which]),
        protection_(std::move(protection)) {}

  void start(std::function<void(payload)> on_frame,
             std::function<void(const std::string&)> on_closed) override;
  void send(frame what) override;
  void finish() override;
  void close() override { finish(); }
  /// The relay passed on a frame. Returns false if the other side did not send it.
  bool came(payload bytes);

  std::size_t queued_bytes() const override { return closed_ ? 0 : beneath().queued_bytes(); }
  // Frames arrive on the relay's pipe, so its window counts.
  receive_window& window() override { return *this; }
  void add(std::size_t bytes) override { beneath().window().add(bytes); }
  void remove(std::size_t bytes) override { beneath().window().remove(bytes); }
  bool held_back() const override { return beneath().held_back(); }
  bool malformed() const override { return false; }
  std::string certificate() const override;
  std::string peer() const override { return "over " + over_->theirs.name; }
  const std::string& kind() const override { return kind_; }

private:
  pipe& beneath() const { return *over_->pipes[head_.which].through; }
  void tell_closed(const std::string& why);

  const std::shared_ptr<host_link> over_;
  const relayed_head head_;
  const std::function<duration()> now_;
  const std::string kind_;
  std::atomic<bool> closed_{false};
  mutable std::mutex protecting_; // guards protection_, and keeps sealed frames in order
  const std::unique_ptr<end_to_end> protection_;
  std::mutex mutex_; // guards the callbacks
  std::function<void(payload)> on_frame_;
  std::function<void(const std::string&)> on_closed_;
};

/// Makes a link with `other` over the relay at the end of `relay`. The function `now` is the clock.
/// `own`, `dialled`: this host, and whether it dials the link. `keys` has no key without keys.
std::shared_ptr<host_link> link_over(const std::shared_ptr<host_link>& relay, const node_key& own,
                                     const node_key& other, std::uint64_t token, bool dialled,
                                     const own_keys& keys, const std::function<duration()>& now);

} // namespace shoal::netem::wire
