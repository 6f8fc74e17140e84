#include "netem/wire/frames.hpp"

#include "netem/wire/address.hpp"
#include "netem/wire/certificates.hpp"
#include "netem/wire/socket_pipe.hpp"

#include <algorithm>
#include <utility>

namespace shoal::netem::wire {

frame to_frame(const hello& what) {
  frame_writer out(frame_kind::hello);
  out.put(hello::magic)
      .put(hello::version)
      .put(what.link)
      .put(std::string_view(what.name))
      .put(what.incarnation);
  out.put(std::string_view(what.address)).put(what.utc_ns);
  for (const auto byte : what.scenario) out.put(byte);
  out.put(what.service).put(what.relays);
  return out.done();
}

std::optional<hello> read_hello(std::span<const std::byte> bytes, bool& other_version) {
  other_version = false;
  frame_reader in(bytes);
  if (in.get<std::uint8_t>() != static_cast<std::uint8_t>(frame_kind::hello) ||
      in.get<std::uint32_t>() != hello::magic)
    return {};
  if (in.get<std::uint32_t>() != hello::version) {
    other_version = in.ok();
    return {};
  }
  hello out;
  out.link = in.get<std::uint64_t>();
  out.name = in.text(63);
  out.incarnation = in.get<std::uint32_t>();
  out.address = in.text(300);
  out.utc_ns = in.get<std::int64_t>();
  out.scenario = in.get<std::array<std::uint8_t, 32>>();
  out.service = in.get<std::uint64_t>();
  out.relays = in.get<std::uint8_t>();
  // The largest incarnation has no node id (netem/fabric.hpp).
  if (!in.finished() || out.incarnation == 0xffffffff || out.relays > 1) return {};
  // The name is printed, and the address is dialled.
  if (!check_name(out.name) || (!out.address.empty() && !parse_address(out.address))) return {};
  return out;
}

std::vector<char> to_bytes(const relayed_head& what) {
  frame_writer out(frame_kind::relayed);
  out.put(what.which).put(std::uint16_t{0}).put(what.other).put(what.link);
  auto bytes = out.done().head;
  bytes.resize(relayed_head::bytes);
  return bytes;
}

std::optional<relayed_head> read_relayed_head(std::span<const std::byte> bytes) {
  if (bytes.size() < relayed_head::bytes) return {};
  frame_reader in(bytes);
  if (in.get<std::uint8_t>() != static_cast<std::uint8_t>(frame_kind::relayed)) return {};
  relayed_head out;
  out.which = in.get<std::uint8_t>();
  in.get<std::uint16_t>();
  out.other = in.node();
  out.link = in.get<std::uint64_t>();
  if (out.which > 1) return {};
  return out;
}

void write(const message_head& what, std::vector<char>& into) {
  frame_writer out(frame_kind::message);
  out.put(what.more)
      .put(std::uint16_t{0})
      .put(what.to)
      .put(what.from)
      .put(what.binary)
      .put(what.wire_bytes)
      .put(std::uint32_t{0})
      .put(what.beside);
  auto bytes = out.done().head;
  into.insert(into.end(), bytes.begin(), bytes.end());
}

std::optional<message_head> read_message_head(std::span<const std::byte> bytes) {
  frame_reader in(bytes);
  message_head out;
  if (in.get<std::uint8_t>() != static_cast<std::uint8_t>(frame_kind::message)) return {};
  out.more = in.get<std::uint8_t>();
  in.get<std::uint16_t>();
  out.to = in.get<std::uint32_t>();
  out.from = in.get<std::uint32_t>();
  out.binary = in.get<std::uint32_t>();
  out.wire_bytes = in.get<std::uint32_t>();
  in.get<std::uint32_t>();
  out.beside = in.get<std::uint64_t>();
  // The bound keeps sums of sizes from wrapping around.
  if (!in.ok() || out.more > 1 || out.beside > std::uint64_t{1} << 62) return {};
  return out;
}

bool message_assembly::begin(const payload& frame, std::optional<whole>& out) {
  out.reset();
  const auto head = read_message_head(frame.bytes());
  if (!head || head_ || head->binary > max_binary_bytes || head->body() > max_message_bytes)
    return false;
  if (head->more == 0) {
    if (frame.size() != message_head::bytes + head->body()) return false;
    out = whole{*head, frame.slice(message_head::bytes, frame.size() - message_head::bytes),
                frame.size()};
    return true;
  }
  head_ = head;
  body_.clear();
  body_.reserve(head->body());
  return append(frame.bytes().subspan(message_head::bytes), out);
}

bool message_assembly::piece(const payload& frame, std::optional<whole>& out) {
  out.reset();
  return head_ && frame.size() > 8 && append(frame.bytes().subspan(8), out);
}

bool message_assembly::append(std::span<const std::byte> part, std::optional<whole>& out) {
  if (body_.size() + part.size() > head_->body()) return false;
  body_.insert(body_.end(), part.begin(), part.end());
  if (body_.size() < head_->body()) return true;
  const auto size = body_.size();
  out = whole{*std::exchange(head_, std::nullopt), payload{std::exchange(body_, {})}, size};
  return true;
}

first_bytes look_at_first(std::string_view bytes, bool tls) {
  const auto wanted =
      tls ? std::string_view("\x16\x03", 2) : protocol_magic.substr(0, first_bytes_looked_at);
  const auto have = std::min(bytes.size(), wanted.size());
  if (bytes.substr(0, have) != wanted.substr(0, have)) return first_bytes::garbage;
  return have < wanted.size() ? first_bytes::too_few : first_bytes::ours;
}

} // namespace shoal::netem::wire
