#include "scenarios/observe/history.hpp"

#include <cstring>
#include <span>

namespace shoal::scenarios {

namespace {
/// The size of a hashed event without its name: 8 + 1 + 2 * 12 + 8 + 4 bytes.
constexpr std::size_t fixed_bytes = 45;
} // namespace

void history_hash::add(const netem::delivered_event& event) {
  const std::size_t length = std::strlen(event.type);
  if (buffer_.size() - used_ < fixed_bytes + length) flush();
  auto put = [this](auto value) {
    std::memcpy(buffer_.data() + used_, &value, sizeof(value));
    used_ += sizeof(value);
  };
  auto put_endpoint = [&](const netem::endpoint& where) {
    std::uint32_t machine = netem::no_host, incarnation = 0;
    if (where.host != netem::no_host) {
      const host_identity& who = names_.of(where.host);
      machine = who.machine;
      incarnation = who.incarnation;
    }
    put(machine);
    put(incarnation);
    put(where.ordinal);
  };
  put(static_cast<std::int64_t>(event.time.count()));
  put(static_cast<std::uint8_t>(event.kind));
  put_endpoint(event.from);
  put_endpoint(event.to);
  put(event.wire_bytes);
  put(static_cast<std::uint32_t>(length));
  const auto name = std::as_bytes(std::span(event.type, length));
  if (length <= buffer_.size() - used_) {
    std::memcpy(buffer_.data() + used_, name.data(), length);
    used_ += length;
  } else {
    flush();
    hash_.add(name);
  }
  ++events_;
}

void history_hash::flush() {
  if (used_ == 0) return;
  hash_.add(std::span<const std::byte>(buffer_.data(), used_));
  used_ = 0;
}

digest history_hash::current() {
  flush();
  return hash_.current();
}

} // namespace shoal::scenarios
