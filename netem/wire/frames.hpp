// The frames of a link: their fields, little-endian, at fixed places. Reading checks every length.
#pragma once

#include "netem/wire/pipe.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::netem::wire {

static_assert(std::endian::native == std::endian::little,
              "frames show numbers as a little-endian machine has them");

enum class frame_kind : std::uint8_t {
  hello = 1,
  refused,
  message,
  piece,
  ping,
  watch,
  ended,
  where_is,
  node_at,
  introduce,
  leaving,
  relayed,
  relay_end,
  list_number,
  list,
  pong
};

/// A node id of ours: netem/fabric.hpp.
struct node_key {
  std::uint32_t incarnation = 0;
  std::array<std::uint8_t, 20> host{};
  auto operator<=>(const node_key&) const = default;
};

class frame_writer {
public:
  explicit frame_writer(frame_kind kind) { put(static_cast<std::uint8_t>(kind)); }

  template <class T>
  requires std::is_integral_v<T> frame_writer& put(T value) {
    const auto at = head_.size();
    head_.resize(at + sizeof(value));
    std::memcpy(head_.data() + at, &value, sizeof(value));
    return *this;
  }
  frame_writer& put(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    head_.insert(head_.end(), text.begin(), text.end());
    return *this;
  }
  frame_writer& put(const node_key& node) {
    put(node.incarnation);
    head_.insert(head_.end(), node.host.begin(), node.host.end());
    return *this;
  }
  frame done() { return {std::move(head_), {}}; }

private:
  std::vector<char> head_;
};

/// Once a field was not there, all that follow are zero, and ok() is false.
class frame_reader {
public:
  explicit frame_reader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <class T>
  T get() {
    T out{};
    if (left_.size() < sizeof(T)) {
      fail();
      return out;
    }
    std::memcpy(&out, left_.data(), sizeof(T));
    left_ = left_.subspan(sizeof(T));
    return out;
  }
  std::string text(std::size_t longest) {
    const auto size = get<std::uint32_t>();
    if (size > longest || size > left_.size()) {
      fail();
      return {};
    }
    std::string out(reinterpret_cast<const char*>(left_.data()), size);
    left_ = left_.subspan(size);
    return out;
  }
  node_key node() {
    node_key out;
    out.incarnation = get<std::uint32_t>();
    out.host = get<std::array<std::uint8_t, 20>>();
    return out;
  }
  bool ok() const noexcept { return ok_; }
  /// All was read, and there was enough.
  bool finished() const noexcept { return ok_ && left_.empty(); }
  std::size_t left() const noexcept { return left_.size(); }

private:
  void fail() {
    ok_ = false;
    left_ = {};
  }
  std::span<const std::byte> left_;
  bool ok_ = true;
};

struct hello {
  static constexpr std::uint32_t magic = 0x4c4f4853; // SHOL
  static constexpr std::uint32_t version = 2;
  std::uint64_t link = 0; ///< the same in both pipes of a link
  std::string name;
  std::uint32_t incarnation = 0;
  std::string address; ///< where others dial; empty: nowhere
  std::int64_t utc_ns = 0;
  std::array<std::uint8_t, 32> scenario{}; ///< its hash
  std::uint64_t service = 0; ///< number of the actor that it introduces itself with; 0: none yet
};

/// What stands before a frame of a link that goes over a relay. On its way to the relay `other` is
/// whom it is for, from there whom it is from.
struct relayed_head {
  std::uint8_t which = 0; ///< of the link's pipes
  node_key other;
  std::uint64_t link = 0; ///< its token
  static constexpr std::size_t bytes = 40;
};
std::vector<char> to_bytes(const relayed_head& what);
std::optional<relayed_head> read_relayed_head(std::span<const std::byte> bytes);

frame to_frame(const hello& what);
/// Nothing if these are not the bytes of a hello of this protocol; `other_version`: of another
/// version.
std::optional<hello> read_hello(std::span<const std::byte> bytes, bool& other_version);

/// The longest binary form, payloads beside it not counted.
inline constexpr std::size_t max_binary_bytes = std::size_t{4} << 20;
/// The longest message in all.
inline constexpr std::size_t max_message_bytes = std::size_t{72} << 20;

/// What stands before the body of a message: its binary form, room up to a multiple of eight, and
/// the payloads beside it.
struct message_head {
  std::uint8_t more = 0;          ///< pieces follow
  std::uint32_t to = 0, from = 0; ///< actors' numbers at the two ends; from 0xffffffff: none
  std::uint32_t binary = 0;
  std::uint32_t wire_bytes = 0;
  std::uint64_t beside = 0;
  static constexpr std::size_t bytes = 32;
  std::uint64_t body() const noexcept { return (std::uint64_t{binary} + 7) / 8 * 8 + beside; }
};
void write(const message_head& what, std::vector<char>& into);
/// Nothing if it is cut, or of sizes that no message has.
std::optional<message_head> read_message_head(std::span<const std::byte> bytes);

/// The messages of one pipe out of its frames: each is one frame, or a first one and pieces. Once
/// it has refused a frame it is not used again.
class message_assembly {
public:
  struct whole {
    message_head head;
    payload body;
    std::size_t bytes = 0; ///< that it keeps in memory
  };
  /// False: no correct host sends that. Otherwise `out` has the message, if this frame was its
  /// last.
  bool begin(const payload& frame, std::optional<whole>& out);
  /// The same for a piece.
  bool piece(const payload& frame, std::optional<whole>& out);
  /// Bytes of a message that is not whole yet.
  std::size_t waiting() const noexcept { return body_.size(); }

private:
  bool append(std::span<const std::byte> part, std::optional<whole>& out);
  std::optional<message_head> head_; // of a message whose pieces are coming
  std::vector<std::byte> body_;
};

/// In a gRPC message, before each frame: its length, and room so that frames start at multiples of
/// eight, as they do behind it.
inline constexpr std::size_t frame_prefix_bytes = 8;
constexpr std::size_t padding_after(std::size_t bytes) {
  return (8 - bytes % 8) % 8;
}
/// The frames of a gRPC message; they share its memory if that starts at a multiple of eight, and
/// otherwise a copy. False if it is not made of frames; then `into` is of no use.
bool split_frames(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                  std::vector<payload>& into);

/// What the first bytes of a connection say of it: a TLS record of a handshake, or the beginning of
/// HTTP/2's preface.
enum class first_bytes : std::uint8_t { too_few, ours, garbage };
inline constexpr std::size_t first_bytes_looked_at = 3;
first_bytes look_at_first(std::string_view bytes, bool tls);

} // namespace shoal::netem::wire
