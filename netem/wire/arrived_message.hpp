// A message from the network in an actor's mailbox. The destructor returns the message's bytes to
// the receive window of the pipe, whether the message was handled or dropped.
#pragma once

#include "netem/wire/pipe.hpp"

#include <caf/mailbox_element.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace shoal::netem::wire {

class arrived_message final : public caf::mailbox_element {
public:
  /// `unhandled` counts the bytes of such messages over all pipes.
  arrived_message(caf::strong_actor_ptr sender, caf::message content, std::shared_ptr<pipe> from,
                  std::size_t bytes, std::shared_ptr<std::atomic<std::uint64_t>> unhandled)
      : caf::mailbox_element(std::move(sender), caf::make_message_id(), {}),
        content_(std::move(content)), from_(std::move(from)), bytes_(bytes),
        unhandled_(std::move(unhandled)) {
    *unhandled_ += bytes_;
  }
  ~arrived_message() override {
    content_.reset();
    *unhandled_ -= bytes_;
    from_->window().remove(bytes_);
  }
  caf::type_erased_tuple& content() override { return content_.vals().unshared(); }
  const caf::type_erased_tuple& content() const override { return *content_.cvals(); }
  caf::message move_content_to_message() override { return content_; }
  caf::message copy_content_to_message() const override { return content_; }

private:
  caf::message content_;
  std::shared_ptr<pipe> from_;
  std::size_t bytes_;
  std::shared_ptr<std::atomic<std::uint64_t>> unhandled_;
};

} // namespace shoal::netem::wire
