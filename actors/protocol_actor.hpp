// The base of every protocol actor: it knows its host, sets the handlers that CAF's defaults get
// wrong for us (defaults print, kill the actor or bounce), and turns what nobody expected into an
// observation instead of a crash.
#pragma once

#include "actors/host.hpp"
#include "actors/host_messages.hpp"

#include <caf/event_based_actor.hpp>

namespace shoal::actors {

class protocol_actor : public caf::event_based_actor {
public:
  protocol_actor(caf::actor_config& config, host& on);

  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) override;
  using caf::event_based_actor::enqueue;
  /// Drops our own address, which would keep us in memory. Who overrides this (to drop the handles
  /// that it holds: two dead actors that know each other are never freed) calls this one too.
  void on_exit() override { address_ = nullptr; }

protected:
  host& here() const noexcept { return host_; }
  /// Our public address.
  const caf::actor& address();
  /// Whether `who` has sent the message that is being handled. False of a message without a sender.
  bool sent_by(const caf::actor& who);
  /// Virtual or wall time since the world began.
  duration now() const;
  /// Sends tick{kind, token} to ourselves after `delay`.
  void set_timer(duration delay, std::uint32_t kind, std::uint64_t token = 0);
  void misbehaviour(peer_id culprit, std::string why);

  /// Another actor that we monitor is gone.
  virtual void on_down(const caf::actor_addr&) {}

private:
  host& host_;
  caf::actor address_;
};

} // namespace shoal::actors
