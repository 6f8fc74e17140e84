// What comes over a connection before it is a message: its first bytes, a gRPC message as frames, hellos, messages in pieces, addresses, what
// relays pass on, and answers to visitors.
#include <algorithm>
#include <memory>
#include <optional>

#include "netem/wire/address.hpp"
#include "netem/wire/frames.hpp"
#include "netem/wire/visit.hpp"
#include "tests/fuzz/targets.hpp"

namespace shoal::fuzz {

namespace {

using namespace netem::wire;

bool same(bytes a, const std::vector<char>& b) {
  const auto other = std::as_bytes(std::span(b));
  return std::equal(a.begin(), a.end(), other.begin(), other.end());
}

/// As a link would: what is no correct host's frame ends it.
bool one_frame(message_assembly& messages, const payload& frame, std::size_t& given) {
  if (frame.empty()) return true;
  given += frame.size();
  must(reinterpret_cast<std::uintptr_t>(frame.bytes().data()) % 8 == 0, "frames start at multiples of eight");
  const auto kind = static_cast<frame_kind>(std::to_integer<std::uint8_t>(frame.bytes()[0]));
  std::optional<message_assembly::whole> whole;
  switch (kind) {
    case frame_kind::message:
      if (!messages.begin(frame, whole)) return false;
      break;
    case frame_kind::piece:
      if (!messages.piece(frame, whole)) return false;
      break;
    case frame_kind::hello: {
      bool other_version = false;
      if (const auto theirs = read_hello(frame.bytes(), other_version))
        must(same(frame.bytes(), to_frame(*theirs).head), "a hello has nothing in it that it does not say");
      else if (!other_version)
        return false;
      return true;
    }
    case frame_kind::relayed: {
      const auto head = read_relayed_head(frame.bytes());
      if (!head) return false;
      must(head->which <= 1 && to_bytes(*head).size() == relayed_head::bytes, "a head is one of ours");
      return true;
    }
    case frame_kind::node_at: {
      frame_reader in(frame.bytes());
      in.get<std::uint8_t>();
      in.node();
      const auto name = in.text(63), where = in.text(300);
      must(name.size() <= 63 && where.size() <= 300, "texts are as long as they may be");
      if (!in.finished()) return false;
      if (const auto address = parse_address(where)) {
        const auto again = parse_address(address->text());
        must(again && *again == *address, "an address reads back");
      }
      return true;
    }
    default: {
      frame_reader in(frame.bytes());
      in.get<std::uint8_t>();
      in.get<std::uint32_t>();
      in.node();
      in.get<std::uint64_t>();
      return in.ok();
    }
  }
  must(messages.waiting() <= given, "nothing is there that did not come");
  if (!whole) return true;
  must(whole->body.size() == whole->head.body() && whole->body.size() <= max_message_bytes, "a message is as long as it says");
  must(whole->body.size() <= given, "nothing is there that did not come");
  const auto aligned = (std::size_t{whole->head.binary} + 7) / 8 * 8;
  must(aligned <= whole->body.size(), "the binary form is in it");
  const auto beside = whole->body.slice(aligned, whole->body.size() - aligned);
  must(beside.size() == whole->head.beside, "and what stands beside it");
  return true;
}

}  // namespace

void frames(bytes input) {
  front from(input);
  const auto how = from.byte();
  if (how % 4 == 1) {
    const auto answer = read_visit_answer(from.rest());
    must(answer.has_value() == !from.empty(), "an answer has bytes");
    return;
  }
  if (how % 4 == 2) {
    if (const auto address = parse_address(text_of(from.rest()))) {
      const auto again = parse_address(address->text());
      must(again && *again == *address, "an address reads back");
    }
    return;
  }
  if (how % 4 == 3) {
    const auto text = text_of(from.rest()).substr(0, first_bytes_looked_at);
    const bool tls = how >= 128;
    const auto says = look_at_first(text, tls);
    if (says == first_bytes::ours) must(look_at_first(text, !tls) == first_bytes::garbage, "nobody speaks both");
    return;
  }
  // Memory that begins where a slice of a connection's buffer may.
  const auto rest = from.rest();
  const auto offset = how / 4 % 8;
  auto owner = std::make_shared<std::vector<std::byte>>(offset + rest.size());
  std::copy(rest.begin(), rest.end(), owner->begin() + offset);
  const auto shown = std::span(*owner).subspan(offset);
  std::vector<payload> all;
  if (!split_frames(owner, shown, all)) return;
  message_assembly messages;
  std::size_t given = 0;
  for (const auto& frame : all)
    if (!one_frame(messages, frame, given)) return;
}

}  // namespace shoal::fuzz
