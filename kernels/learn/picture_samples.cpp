#include "kernels/learn/picture_samples.hpp"

#include "kernels/learn/text.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace shoal::learn {

namespace {

/// The keys of passes differ from those of other permutations.
constexpr std::uint64_t pass_key = 0x70696374;

} // namespace

picture_samples::picture_samples(picture_set set, const dalle_config& config,
                                 std::uint64_t shuffle_buffer)
    : set_(std::move(set)), format_{config}, shuffle_buffer_(shuffle_buffer),
      train_(set_.places(false)), held_out_(set_.places(true)) {
  if (held_out_.empty()) held_out_ = train_;
}

result<picture_samples> picture_samples::make(picture_set set, const dalle_config& config,
                                              std::uint64_t shuffle_buffer) {
  struct pair {
    const char* name;
    std::int64_t wanted, found;
  };
  for (const auto& [name, wanted, found] :
       {pair{"vocabulary", config.text_vocabulary, set.words->vocabulary()},
        pair{"codes", config.codes, static_cast<std::int64_t>(set.coder->grid().codes)},
        pair{"side", config.side, static_cast<std::int64_t>(set.coder->grid().side)}})
    if (wanted != found)
      return failure{"pictures: the prepared file has " + std::string(name) + " " +
                     std::to_string(found) + ", and workload." + name + " is " +
                     std::to_string(wanted)};
  if (set.places(false).empty())
    return failure{"pictures: the prepared file has no picture to train on"};
  return picture_samples(std::move(set), config, shuffle_buffer);
}

void picture_samples::write(std::uint64_t index, std::span<std::byte> out) const {
  const auto n = train_.size();
  const auto at = index % n, key = pass_key + index / n;
  const auto place =
      shuffle_buffer_ == 0 ? permute(at, n, key) : buffered(at, n, shuffle_buffer_, key);
  const auto picture = train_[place];
  format_.write(
      {set_.tokens_of(set_.captions[picture], static_cast<std::size_t>(format_.config.text_length)),
       set_.codes[picture]},
      out);
}

std::vector<std::byte> picture_samples::samples_at(std::span<const std::size_t> places) const {
  std::vector<std::byte> out(places.size() * format_.bytes());
  for (std::size_t i = 0; i < places.size(); ++i)
    format_.write({set_.tokens_of(set_.captions[places[i]],
                                  static_cast<std::size_t>(format_.config.text_length)),
                   set_.codes[places[i]]},
                  std::span(out).subspan(i * format_.bytes(), format_.bytes()));
  return out;
}

std::vector<std::byte> picture_samples::held_out(std::size_t most) const {
  const auto count = std::min(most, held_out_.size());
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < count; ++i) some.push_back(held_out_[i * held_out_.size() / count]);
  return samples_at(some);
}

} // namespace shoal::learn
