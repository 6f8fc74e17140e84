// The bytes of a connection before they are messages. They are first bytes, a connection's bytes as
// frames, hellos, messages in pieces, addresses, relayed frames, and answers to control requests.
#include "netem/wire/frames.hpp"

#include "netem/wire/address.hpp"
#include "netem/wire/frame_stream.hpp"
#include "netem/wire/send_control_request.hpp"
#include "netem/wire/striped_pipe.hpp"
#include "tests/fuzz/targets.hpp"

#include <algorithm>
#include <memory>
#include <optional>

namespace shoal::fuzz {

namespace {

using namespace netem::wire;

constexpr std::size_t longest_text = std::size_t{512} << 10; // as for a link

bool same(bytes a, const std::vector<char>& b) {
  const auto other = std::as_bytes(std::span(b));
  return std::equal(a.begin(), a.end(), other.begin(), other.end());
}

/// Whether all of `came` was read; then `again`, which is what was read, is written as what came.
bool reads(const frame_reader& in, const payload& came, frame_writer& again) {
  if (!in.finished()) return false;
  must(same(came.bytes(), again.done().head), "a frame has nothing in it that it does not say");
  return true;
}

/// Reads frames with a few fields. Returns false if no correct host sends the frame.
bool short_frame(frame_kind kind, const payload& frame) {
  frame_reader in(frame.bytes());
  in.get<std::uint8_t>();
  frame_writer again(kind);
  switch (kind) {
  case frame_kind::leaving:
    return reads(in, frame, again);
  case frame_kind::refused:
    again.put(in.get<std::uint8_t>());
    again.put(std::string_view(in.text(longest_text)));
    return reads(in, frame, again);
  case frame_kind::ping:
    if (in.finished()) return true;
    [[fallthrough]];
  case frame_kind::pong:
  case frame_kind::introduce:
  case frame_kind::revocation_list_number:
    again.put(in.get<std::uint64_t>());
    return reads(in, frame, again);
  case frame_kind::watch:
  case frame_kind::ended:
    again.put(in.get<std::uint32_t>());
    return reads(in, frame, again);
  case frame_kind::where_is:
    again.put(in.node());
    return reads(in, frame, again);
  case frame_kind::relay_end:
    again.put(in.node());
    again.put(in.get<std::uint64_t>());
    return reads(in, frame, again);
  case frame_kind::node_at: {
    again.put(in.node());
    const auto name = in.text(63), where = in.text(300);
    must(name.size() <= 63 && where.size() <= 300, "texts are as long as they may be");
    again.put(std::string_view(name)).put(std::string_view(where));
    if (!reads(in, frame, again)) return false;
    if (const auto address = parse_address(where)) {
      const auto spelt = parse_address(address->text());
      must(spelt && *spelt == *address, "an address reads back");
    }
    return true;
  }
  case frame_kind::revocation_list: // the target `certificates` covers its content
    again.put(std::string_view(in.text(longest_text)));
    return reads(in, frame, again);
  default:
    return false;
  }
}

/// Reads a frame as a link does: a frame that no correct host sends ends the link.
bool one_frame(message_assembly& messages, const payload& frame, std::size_t& given) {
  if (frame.empty()) return true;
  given += frame.size();
  must(reinterpret_cast<std::uintptr_t>(frame.bytes().data()) % 8 == 0,
       "frames start at multiples of eight");
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
      must(same(frame.bytes(), to_frame(*theirs).head),
           "a hello has nothing in it that it does not say");
    else if (!other_version)
      return false;
    return true;
  }
  case frame_kind::stripe: {
    const auto greeting = read_stripe_greeting(frame.bytes());
    if (!greeting) return false;
    must(greeting->which < greeting->count && greeting->count <= most_stripes,
         "a stripe has a place");
    must(same(frame.bytes(), to_frame(*greeting).head),
         "a greeting has nothing in it that it does not say");
    return true;
  }
  case frame_kind::relayed: {
    const auto head = read_relayed_head(frame.bytes());
    if (!head) return false;
    must(head->which <= 1 && to_bytes(*head).size() == relayed_head::bytes,
         "a head is one of ours");
    return true;
  }
  default:
    return short_frame(kind, frame);
  }
  must(messages.waiting() <= given, "nothing is there that did not come");
  if (!whole) return true;
  must(whole->body.size() == whole->head.body() && whole->body.size() <= max_message_bytes,
       "a message is as long as it says");
  must(whole->body.size() <= given, "nothing is there that did not come");
  const auto aligned = (std::size_t{whole->head.binary} + 7) / 8 * 8;
  must(aligned <= whole->body.size(), "the binary form is in it");
  const auto beside = whole->body.slice(aligned, whole->body.size() - aligned);
  must(beside.size() == whole->head.beside, "and what stands beside it");
  return true;
}

} // namespace

void frames(bytes input) {
  front from(input);
  const auto how = from.byte();
  if (how % 4 == 1) {
    const auto answer = read_control_answer(from.rest());
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
    if (says == first_bytes::ours)
      must(look_at_first(text, !tls) == first_bytes::garbage, "nobody speaks both");
    return;
  }
  // The bytes come in portions of any size.
  auto rest = from.rest();
  const std::size_t most = 1 + how / 4 * 64;
  frame_stream stream;
  message_assembly messages;
  std::size_t given = 0;
  while (!rest.empty()) {
    const auto portion = rest.first(std::min(rest.size(), most));
    auto left = portion;
    for (const auto& place : stream.room()) {
      const auto part = left.first(std::min(left.size(), place.size()));
      std::copy(part.begin(), part.end(), place.begin());
      left = left.subspan(part.size());
    }
    rest = rest.subspan(portion.size() - left.size());
    std::vector<payload> all;
    if (!stream.filled(portion.size() - left.size(), all)) return;
    for (const auto& frame : all)
      if (!one_frame(messages, frame, given)) return;
  }
}

} // namespace shoal::fuzz
