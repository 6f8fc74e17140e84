// A prepared set of pictures as an endless sequence of samples of DALL-E. Sample i can be computed
// alone, so a shard needs no state and its replica yields the same bytes. In each pass every
// picture that is not held out comes once, in an order that a keyed permutation gives.
// Thread safety: immutable after make().
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/dalle_sample.hpp"
#include "kernels/learn/pictures/picture_set.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

class picture_samples {
public:
  /// `shuffle_buffer`: consecutive pictures among which pictures are drawn; 0: all.
  /// Errors: sizes of the model that are not those of the set (names both); no pictures to train
  /// on.
  static result<picture_samples> make(picture_set set, const dalle_config& config,
                                      std::uint64_t shuffle_buffer);

  const picture_set& set() const noexcept { return set_; }
  const dalle_format& format() const noexcept { return format_; }
  /// Requires: out.size() == format().bytes().
  void write(std::uint64_t index, std::span<std::byte> out) const;
  /// Up to `most` held-out samples, spread over all of them; training samples if none are held out.
  std::vector<std::byte> held_out(std::size_t most) const;
  /// The samples of these pictures of the set.
  std::vector<std::byte> samples_at(std::span<const std::size_t> places) const;

private:
  picture_samples(picture_set set, const dalle_config& config, std::uint64_t shuffle_buffer);

  picture_set set_;
  dalle_format format_;
  std::uint64_t shuffle_buffer_;
  std::vector<std::size_t> train_, held_out_;
};

} // namespace shoal::learn
