#include "netem/wire/frame_stream.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace shoal::netem::wire {

std::array<char, frame_prefix_bytes> frame_prefix(std::size_t bytes) {
  std::array<char, frame_prefix_bytes> out{};
  const auto length = static_cast<std::uint32_t>(bytes);
  std::memcpy(out.data(), &length, sizeof(length));
  return out;
}

std::array<std::span<std::byte>, 2> frame_stream::room() {
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(buffer_bytes);
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (buffer_bytes - begin_ < longest_short) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  const std::span rest(buffer_.get() + end_, buffer_bytes - end_);
  if (!long_) return {rest, {}};
  return {std::span(long_.get() + long_come_, long_size_ - long_come_), rest};
}

bool frame_stream::filled(std::size_t bytes, std::vector<payload>& into) {
  if (long_) {
    const auto of_long = std::min(bytes, long_size_ - long_come_);
    long_come_ += of_long;
    bytes -= of_long;
    if (long_come_ == long_size_) complete(into);
  }
  end_ += bytes;
  SHOAL_CHECK(end_ <= buffer_bytes, "bytes come into the room that they were given");
  return cut(into);
}

void frame_stream::complete(std::vector<payload>& into) {
  const std::span<const std::byte> shown(long_.get(), long_length_);
  into.push_back(payload::shared(std::exchange(long_, nullptr), shown));
  came();
}

bool frame_stream::cut(std::vector<payload>& into) {
  while (end_ - begin_ >= frame_prefix_bytes) {
    std::uint32_t prefix[2];
    std::memcpy(prefix, buffer_.get() + begin_, sizeof(prefix));
    const auto longest = limited_ > 0 ? longest_limited_ : max_frame_bytes;
    const std::size_t length = prefix[0], padded = length + padding_after(length);
    if (prefix[1] != 0 || length > longest) return false;
    const auto come = end_ - begin_ - frame_prefix_bytes;
    const auto* bytes = buffer_.get() + begin_ + frame_prefix_bytes;
    if (come >= padded) {
      into.emplace_back(std::vector<std::byte>(bytes, bytes + length));
      begin_ += frame_prefix_bytes + padded;
      came();
    } else if (frame_prefix_bytes + padded <= longest_short) {
      return true;
    } else {
      long_ = std::make_shared_for_overwrite<std::byte[]>(padded);
      std::memcpy(long_.get(), bytes, come);
      long_size_ = padded;
      long_length_ = length;
      long_come_ = come;
      begin_ = end_ = 0;
      return true;
    }
  }
  return true;
}

} // namespace shoal::netem::wire
