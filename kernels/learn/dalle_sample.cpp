#include "kernels/learn/dalle_sample.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace shoal::learn {

namespace {

int bits_of(std::int64_t values) {
  return std::bit_width(static_cast<std::uint64_t>(values - 1));
}

class bit_place {
public:
  void write(std::span<std::byte> to, token_id value, int bits) {
    for (int i = 0; i < bits; ++i, ++at_)
      to[at_ / 8] |= static_cast<std::byte>(((value >> i) & 1) << (at_ % 8));
  }
  token_id read(std::span<const std::byte> from, int bits) {
    token_id out = 0;
    for (int i = 0; i < bits; ++i, ++at_)
      out |= token_id{(std::to_integer<int>(from[at_ / 8]) >> (at_ % 8)) & 1} << i;
    return out;
  }

private:
  std::size_t at_ = 0;
};

} // namespace

std::size_t dalle_format::bytes() const noexcept {
  return static_cast<std::size_t>(config.text_length * bits_of(config.text_vocabulary) +
                                  config.image_length() * bits_of(config.codes) + 7) /
         8;
}

result<void> dalle_format::check(std::span<const std::byte> samples) const {
  if (auto whole = check_whole_samples(samples, bytes()); !whole) return whole;
  for (std::size_t at = 0; at < samples.size(); at += bytes()) {
    const auto one = read(samples.subspan(at, bytes()));
    const auto wrong = [&](const std::string& what) {
      return failure{"samples: number " + std::to_string(at / bytes()) + " has " + what};
    };
    bool padding = false;
    for (const auto token : one.text) {
      if (token >= config.text_vocabulary)
        return wrong("token " + std::to_string(token) + " in its caption; the model has " +
                     std::to_string(config.text_vocabulary));
      if (padding && token != 0) return wrong("a token behind the end of its caption");
      padding = token == 0;
    }
    for (const auto code : one.codes)
      if (code >= config.codes)
        return wrong("code " + std::to_string(code) + "; the model has " +
                     std::to_string(config.codes));
  }
  return {};
}

void dalle_format::write(const dalle_sample& from, std::span<std::byte> out) const {
  SHOAL_CHECK(out.size() == bytes() &&
                  from.text.size() == static_cast<std::size_t>(config.text_length) &&
                  from.codes.size() == static_cast<std::size_t>(config.image_length()),
              "a sample has the sizes of the model");
  std::fill(out.begin(), out.end(), std::byte{0});
  bit_place place;
  for (const auto token : from.text) place.write(out, token, bits_of(config.text_vocabulary));
  for (const auto code : from.codes) place.write(out, code, bits_of(config.codes));
}

dalle_sample dalle_format::read(std::span<const std::byte> from) const {
  dalle_sample out;
  bit_place place;
  for (std::int64_t i = 0; i < config.text_length; ++i)
    out.text.push_back(place.read(from, bits_of(config.text_vocabulary)));
  for (std::int64_t i = 0; i < config.image_length(); ++i)
    out.codes.push_back(place.read(from, bits_of(config.codes)));
  return out;
}

dalle_batch dalle_format::batch(std::span<const std::byte> samples) const {
  dalle_batch out;
  for (std::size_t at = 0; at < samples.size(); at += bytes(), ++out.samples) {
    const auto one = read(samples.subspan(at, bytes()));
    out.text.insert(out.text.end(), one.text.begin(), one.text.end());
    out.codes.insert(out.codes.end(), one.codes.begin(), one.codes.end());
  }
  return out;
}

} // namespace shoal::learn
