// The frames of a link that is up, decoded into values. Decoding checks every length. Messages,
// their pieces and relayed frames are not among them, since their bytes are passed on unchanged.
#pragma once

#include "netem/wire/frames.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

namespace shoal::netem::wire {

struct ping_frame {
  std::optional<std::uint64_t> stamp; ///< if set, the sender wants an answer
};
struct pong_frame {
  std::uint64_t stamp = 0;
};
/// A hello on the second pipe, after the link is up.
struct late_hello {};
struct late_refusal {};
struct watch_frame {
  std::uint32_t ordinal = 0;
};
struct ended_frame {
  std::uint32_t ordinal = 0;
};
struct where_is_frame {
  node_key node;
};
struct node_at_frame {
  node_key node;
  std::string name, address;
};
struct introduce_frame {
  std::uint64_t service = 0;
};
struct leaving_frame {};
struct relay_end_frame {
  node_key other;
  std::uint64_t link = 0;
};
struct revocation_list_number_frame {
  std::uint64_t number = 0;
};
struct revocation_list_frame {
  std::string pem;
};

using link_frame =
    std::variant<ping_frame, pong_frame, late_hello, late_refusal, watch_frame, ended_frame,
                 where_is_frame, node_at_frame, introduce_frame, leaving_frame, relay_end_frame,
                 revocation_list_number_frame, revocation_list_frame>;

/// Returns nothing if no correct host sends these bytes.
std::optional<link_frame> read_link_frame(frame_kind kind, std::span<const std::byte> bytes);

} // namespace shoal::netem::wire
