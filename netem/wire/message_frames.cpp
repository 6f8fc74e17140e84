#include "netem/wire/message_frames.hpp"

#include <algorithm>

namespace shoal::netem::wire {

std::vector<frame> frames_of(message_head head, encoded_message what, std::size_t piece) {
  head.binary = static_cast<std::uint32_t>(what.binary.size());
  head.beside = what.beside_bytes();
  const auto body = head.body();
  head.more = message_head::bytes + body > piece ? 1 : 0;
  std::vector<frame> out(1);
  out[0].head.reserve(message_head::bytes + what.binary.size() + 8);
  write(head, out[0].head);
  what.binary.resize((what.binary.size() + 7) / 8 * 8);
  if (head.more == 0) {
    out[0].head.insert(out[0].head.end(), what.binary.begin(), what.binary.end());
    out[0].behind = std::move(what.beside);
    return out;
  }
  const auto bytes = std::as_bytes(std::span(what.binary));
  std::vector<payload> parts;
  if (!bytes.empty()) parts.emplace_back(std::vector<std::byte>(bytes.begin(), bytes.end()));
  parts.insert(parts.end(), what.beside.begin(), what.beside.end());
  std::size_t room = piece - message_head::bytes;
  for (const auto& part : parts)
    for (std::size_t at = 0; at < part.size();) {
      if (room == 0) {
        auto next = frame_writer(frame_kind::piece).done();
        next.head.resize(8);
        out.push_back(std::move(next));
        room = piece - 8;
      }
      const auto count = std::min(room, part.size() - at);
      out.back().behind.push_back(part.slice(at, count));
      at += count;
      room -= count;
    }
  return out;
}

} // namespace shoal::netem::wire
