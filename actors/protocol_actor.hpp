// The base of every protocol actor. It knows its host and replaces CAF's default handlers, which
// print, stop the actor or return messages. It reports an unexpected message as an observation, and
// the actor goes on.
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
  /// Drops this actor's own address, which would keep the actor in memory. An override also drops
  /// the handles that the actor holds, because two dead actors that refer to each other are never
  /// freed. An override calls this function.
  void on_exit() override { address_ = nullptr; }

protected:
  host& here() const noexcept { return host_; }
  /// The public address of this actor.
  const caf::actor& address();
  /// True if the message that is being handled is from `who`; false if the message has no sender.
  bool sent_by(const caf::actor& who);
  /// The peer and the member whose host sent the message that is being handled; 0 if the message
  /// has no sender. Ids in a message's body prove nothing.
  peer_id sender_peer() { return host_.peer_of(current_sender()); }
  member_id sender_member() { return host_.member_of(current_sender()); }
  /// True if `address` and the message's sender are on one host. A reply may only go there.
  bool is_senders(const caf::actor& address);
  /// Virtual or wall time since the world began.
  duration now() const;
  /// Sends tick{kind, token} to this actor after `delay`.
  void set_timer(duration delay, std::uint32_t kind, std::uint64_t token = 0);
  /// Reports that `culprit` sent what no correct peer sends. 0: this host does not know the
  /// culprit.
  void misbehaviour(peer_id culprit, std::string why);
  /// Reports the sender of the message that is being handled. A message that an actor kept for
  /// later had another sender, so its handler names that sender.
  void sender_misbehaves(std::string why) { misbehaviour(sender_peer(), std::move(why)); }

  /// An actor that this one monitors is gone.
  virtual void on_down(const caf::actor_addr&) {}

private:
  host& host_;
  caf::actor address_;
};

} // namespace shoal::actors
