#include "actors/protocol_actor.hpp"

#include "actors/observe.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

namespace shoal::actors {

protocol_actor::protocol_actor(caf::actor_config& config, host& on)
    : caf::event_based_actor(config), host_(on) {
  set_default_handler(
      [this](caf::scheduled_actor*, caf::message_view&) -> caf::result<caf::message> {
        sender_misbehaves("unexpected message type");
        return caf::message{};
      });
  set_error_handler([](caf::scheduled_actor*, caf::error&) {});
  set_down_handler([this](caf::scheduled_actor*, caf::down_msg& down) { on_down(down.source); });
  set_exit_handler(
      [](caf::scheduled_actor* self, caf::exit_msg& exit) { self->quit(exit.reason); });
  set_exception_handler([this](caf::scheduled_actor*, std::exception_ptr& thrown) -> caf::error {
    // No message of a peer can cause an exception, so an exception is a bug of this program. It
    // ends the program, because a silently dead actor would hide the bug.
    std::string what = "unknown exception";
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      what = e.what();
    } catch (...) {
    }
    check_failed(__FILE__, __LINE__, "no exception leaves a handler", what.c_str());
  });
}

void protocol_actor::enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) {
  // CAF names the actor that ended as the sender of a down_msg. That notice is this host's own, and
  // those who wait for a banned member need it.
  if (host_.refuses(element->sender) && !element->content().match_elements<caf::down_msg>()) return;
  host_.arriving();
  caf::event_based_actor::enqueue(std::move(element), unit);
}

const caf::actor& protocol_actor::address() {
  if (!address_) address_ = host_.address_of(caf::actor_cast<caf::actor>(this));
  return address_;
}

bool protocol_actor::sent_by(const caf::actor& who) {
  const auto& sender = current_sender();
  return sender && caf::actor_cast<caf::strong_actor_ptr>(who) == sender;
}

bool protocol_actor::is_senders(const caf::actor& address) {
  const auto sender = sender_peer();
  return sender != 0 && sender == host_.peer_of(caf::actor_cast<caf::strong_actor_ptr>(address));
}

duration protocol_actor::now() const {
  return const_cast<protocol_actor*>(this)->clock().now().time_since_epoch();
}

void protocol_actor::set_timer(duration delay, std::uint32_t kind, std::uint64_t token) {
  delayed_send(this, delay, tick{kind, token});
}

void protocol_actor::misbehaviour(peer_id culprit, std::string why) {
  // A message of this host's own actors reported the fault, so the culprit is unknown.
  if (culprit == host_.id()) culprit = 0;
  host_.observe(misbehaved{culprit, std::move(why)});
}

} // namespace shoal::actors
