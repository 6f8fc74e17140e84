// Cuts the bytes of a connection into frames. Each frame gets memory of its own, which starts at a
// multiple of eight. A long frame is read into its memory directly, a short one by way of a buffer.
#pragma once

#include "kernels/base/payload.hpp"
#include "netem/wire/pipe.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace shoal::netem::wire {

/// The prefix of each frame: its length in four bytes, and four zeros. Padding to a multiple of
/// eight bytes follows the frame.
inline constexpr std::size_t frame_prefix_bytes = 8;
constexpr std::size_t padding_after(std::size_t bytes) {
  return (8 - bytes % 8) % 8;
}
std::array<char, frame_prefix_bytes> frame_prefix(std::size_t bytes);

class frame_stream {
public:
  /// Limits the length of the first frames. All later ones have at most max_frame_bytes.
  void limit_first(unsigned frames, std::size_t bytes) noexcept {
    limited_ = frames;
    longest_limited_ = bytes;
  }
  /// Where the next bytes of the connection belong: first the one place, then the other. Valid
  /// until the next call of filled(). The first place has room; the second may be empty.
  std::array<std::span<std::byte>, 2> room();
  /// So many bytes were put there. Adds the frames that are complete. Returns false if the bytes
  /// are no frames; the object must then not be used again.
  /// Requires: bytes <= the sum of both places.
  bool filled(std::size_t bytes, std::vector<payload>& into);

  /// The memory of a long frame that is not complete; 0: there is none.
  std::size_t incomplete() const noexcept { return long_ ? long_size_ : 0; }
  /// True if the last bytes ended with a frame.
  bool is_between_frames() const noexcept { return !long_ && begin_ == end_; }

private:
  /// Frames beyond this length, with prefix and padding, are long.
  static constexpr std::size_t longest_short = 4096;
  static constexpr std::size_t buffer_bytes = 4 * longest_short;

  bool cut(std::vector<payload>& into);
  void came() noexcept { limited_ -= limited_ > 0 ? 1 : 0; }
  void complete(std::vector<payload>& into);

  unsigned limited_ = 0; // frames that are still to come
  std::size_t longest_limited_ = 0;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t begin_ = 0, end_ = 0; // the bytes of the buffer that are in no frame yet
  std::shared_ptr<std::byte[]> long_;
  /// The long frame has so many bytes with its padding, and without it; so many have come.
  std::size_t long_size_ = 0, long_length_ = 0, long_come_ = 0;
};

} // namespace shoal::netem::wire
