#include "netem/wire/link_frames.hpp"

#include "netem/wire/address.hpp"
#include "netem/wire/certificates.hpp"
#include "netem/wire/revocation.hpp"

namespace shoal::netem::wire {

namespace {

constexpr std::size_t longest_name = 63, longest_address = 300;

std::optional<link_frame> read(frame_kind kind, frame_reader& in) {
  switch (kind) {
  case frame_kind::ping:
    if (in.left() == 0) return ping_frame{};
    return ping_frame{in.get<std::uint64_t>()};
  case frame_kind::pong:
    return pong_frame{in.get<std::uint64_t>()};
  case frame_kind::watch:
    return watch_frame{in.get<std::uint32_t>()};
  case frame_kind::ended:
    return ended_frame{in.get<std::uint32_t>()};
  case frame_kind::where_is:
    return where_is_frame{in.node()};
  case frame_kind::node_at: {
    node_at_frame out;
    out.node = in.node();
    out.name = in.text(longest_name);
    out.address = in.text(longest_address);
    if ((!out.name.empty() && !check_name(out.name)) ||
        (!out.address.empty() && !parse_address(out.address)))
      return {};
    return out;
  }
  case frame_kind::introduce:
    return introduce_frame{in.get<std::uint64_t>()};
  case frame_kind::leaving:
    return leaving_frame{};
  case frame_kind::relay_end: {
    relay_end_frame out;
    out.other = in.node();
    out.link = in.get<std::uint64_t>();
    return out;
  }
  case frame_kind::revocation_list_number:
    return revocation_list_number_frame{in.get<std::uint64_t>()};
  case frame_kind::revocation_list:
    return revocation_list_frame{in.text(longest_revocation_list)};
  default:
    return {};
  }
}

} // namespace

std::optional<link_frame> read_link_frame(frame_kind kind, std::span<const std::byte> bytes) {
  // The first hello or refusal was handled before the link came up, so these need no contents.
  if (kind == frame_kind::hello) return late_hello{};
  if (kind == frame_kind::refused) return late_refusal{};
  frame_reader in(bytes);
  in.get<std::uint8_t>();
  auto out = read(kind, in);
  return out && in.finished() ? std::move(out) : std::nullopt;
}

} // namespace shoal::netem::wire
