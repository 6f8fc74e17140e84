// The frames of a link. Each frame has its fields at fixed places, in little-endian order. Readers
// check every length.
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
              "frames are little-endian, so the machine must be, too");

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
  revocation_list_number,
  revocation_list,
  pong,
  greeting, ///< the first frame of each side on a relayed pipe with keys (end_to_end.hpp)
  sealed,   ///< each later frame on such a pipe
  stripe    ///< the first frame of a stripe (striped_pipe.hpp)
};

/// The node id of a host; see netem/fabric.hpp.
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

/// Reads fields in order. After the first missing field, every field reads as zero and ok() is
/// false.
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
  /// True if every field was present and no byte is left.
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
  static constexpr std::uint32_t version = 4;
  std::uint64_t link = 0; ///< the link's token, the same on both pipes
  std::string name;
  std::uint32_t incarnation = 0;
  std::string address; ///< the address that others dial; empty if the host does not listen
  std::int64_t utc_ns = 0;
  std::array<std::uint8_t, 32> scenario{}; ///< the hash of the scenario's text
  std::uint64_t service = 0; ///< the number of the actor that introduces this host; 0: none yet
  std::uint8_t relays = 0;   ///< 1: the host offers to relay links of the receiver
};

/// The head of a frame that a relay passes on. On the way to the relay `other` is the receiver;
/// behind the relay `other` is the sender.
struct relayed_head {
  std::uint8_t which = 0; ///< the index of the link's pipe
  node_key other;
  std::uint64_t link = 0; ///< the link's token
  static constexpr std::size_t bytes = 40;
};
std::vector<char> to_bytes(const relayed_head& what);
std::optional<relayed_head> read_relayed_head(std::span<const std::byte> bytes);

frame to_frame(const hello& what);
/// Reads a hello. Returns nothing if the bytes are not a hello of this protocol. Sets
/// `other_version` if they are a hello of another protocol version.
std::optional<hello> read_hello(std::span<const std::byte> bytes, bool& other_version);

/// The longest binary form, without the payloads beside it.
inline constexpr std::size_t max_binary_bytes = std::size_t{4} << 20;
/// The longest message, payloads included.
inline constexpr std::size_t max_message_bytes = std::size_t{72} << 20;

/// The head of a message. The body follows: the binary form, padding to a multiple of eight bytes,
/// and the payloads.
struct message_head {
  std::uint8_t more = 0;          ///< 1 if pieces follow
  std::uint32_t to = 0, from = 0; ///< actor numbers at the two ends; 0xffffffff and above: none
  std::uint32_t binary = 0;
  std::uint32_t wire_bytes = 0;
  std::uint64_t beside = 0;
  static constexpr std::size_t bytes = 32;
  std::uint64_t body() const noexcept { return (std::uint64_t{binary} + 7) / 8 * 8 + beside; }
};
void write(const message_head& what, std::vector<char>& into);
/// Returns nothing if the head is truncated, or has sizes that no message has.
std::optional<message_head> read_message_head(std::span<const std::byte> bytes);

/// Assembles the frames of one pipe into messages. A message is one frame, or a first frame and
/// pieces. After a refused frame the object must not be used again.
class message_assembly {
public:
  struct whole {
    message_head head;
    payload body;
    std::size_t bytes = 0; ///< the memory that the message keeps in use
  };
  /// Adds a message's first frame. Returns false if no correct host sends it. Fills `out` if the
  /// message is complete.
  bool begin(const payload& frame, std::optional<whole>& out);
  /// Adds a piece, like begin().
  bool piece(const payload& frame, std::optional<whole>& out);
  /// The bytes of the incomplete message.
  std::size_t waiting() const noexcept { return body_.size(); }

private:
  bool append(std::span<const std::byte> part, std::optional<whole>& out);
  std::optional<message_head> head_; // the head of the incomplete message
  std::vector<std::byte> body_;
};

/// Classifies the first bytes of a connection: a TLS handshake record with TLS, the protocol's
/// magic bytes (socket_pipe.hpp) without.
enum class first_bytes : std::uint8_t { too_few, ours, garbage };
inline constexpr std::size_t first_bytes_looked_at = 3;
first_bytes look_at_first(std::string_view bytes, bool tls);

} // namespace shoal::netem::wire
