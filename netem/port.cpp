#include "netem/port.hpp"

#include "netem/fabric_state.hpp"

namespace shoal::netem {

namespace {
std::atomic<std::size_t> live_ports{0};
}

port::port(caf::actor_config& config, fabric_link net, caf::strong_actor_ptr actor, host_index host,
           std::uint32_t ordinal)
    : caf::actor_proxy(config), net_(std::move(net)), actor_(std::move(actor)), host_(host),
      ordinal_(ordinal) {
  ++live_ports;
}

port::~port() {
  --live_ports;
}

std::size_t port::live() noexcept {
  return live_ports;
}

void port::enqueue(caf::mailbox_element_ptr element, caf::execution_unit*) {
  if (auto* net = net_->load()) net->send(*this, std::move(element));
}

void port::attach(caf::attachable_ptr observer) {
  if (auto* net = net_->load()) net->observe(*this, std::move(observer));
}

std::size_t port::detach(const caf::attachable::token& what) {
  auto* net = net_->load();
  return net != nullptr ? net->forget(*this, what) : 0;
}

// When a registry releases an address, the actor behind it must live on.
void port::kill_proxy(caf::execution_unit*, caf::error) {}

} // namespace shoal::netem
