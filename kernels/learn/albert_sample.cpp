#include "kernels/learn/albert_sample.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <string>

namespace shoal::learn {

namespace {

constexpr std::size_t header_bytes = 8;

std::size_t number_at(std::span<const std::byte> from, std::size_t at) {
  return std::to_integer<std::size_t>(from[at]) | std::to_integer<std::size_t>(from[at + 1]) << 8;
}

void put_number(std::span<std::byte> to, std::size_t at, std::size_t number) {
  to[at] = static_cast<std::byte>(number & 0xff);
  to[at + 1] = static_cast<std::byte>(number >> 8);
}

} // namespace

std::size_t albert_format::bytes() const noexcept {
  return header_bytes + 2 * static_cast<std::size_t>(length) * token_bytes(vocabulary + 1);
}

result<void> albert_format::check(std::span<const std::byte> samples) const {
  if (auto whole = check_whole_samples(samples, bytes()); !whole) return whole;
  const auto wrong = [&](std::size_t at, const std::string& what) {
    return failure{"samples: number " + std::to_string(at / bytes()) + " " + what};
  };
  for (std::size_t at = 0; at < samples.size(); at += bytes()) {
    const auto one = samples.subspan(at, bytes());
    const auto count = number_at(one, 0), first = number_at(one, 2);
    if (count == 0 || count > static_cast<std::size_t>(length) || first > count)
      return wrong(
          at, "says that it has " + std::to_string(count) + " tokens, " + std::to_string(first) +
                  " tokens in its first segment; a sample has room for " + std::to_string(length));
    if (std::to_integer<int>(one[4]) > 1) return wrong(at, "has an order that is neither 0 nor 1");
    const auto values = one.subspan(header_bytes);
    if (auto fine = check_tokens(values.first(values.size() / 2), vocabulary); !fine)
      return wrong(at, "is wrong: " + fine.error());
    if (auto fine = check_tokens(values.subspan(values.size() / 2), vocabulary + 1); !fine)
      return wrong(at, "has wrong labels: " + fine.error());
  }
  return {};
}

void albert_format::write(const albert_sample& from, std::span<std::byte> out) const {
  SHOAL_CHECK(out.size() == bytes(), "there is room for one sample");
  SHOAL_CHECK(!from.tokens.empty() && from.tokens.size() <= static_cast<std::size_t>(length) &&
                  from.labels.size() == from.tokens.size() && from.first <= from.tokens.size() &&
                  (from.order == 0 || from.order == 1),
              "a sample fits its format");
  std::fill(out.begin(), out.end(), std::byte{0});
  put_number(out, 0, from.tokens.size());
  put_number(out, 2, from.first);
  out[4] = static_cast<std::byte>(from.order);
  auto labels = from.labels;
  std::replace(labels.begin(), labels.end(), albert_sample::no_label, token_id{vocabulary});
  const auto width = token_bytes(vocabulary + 1), used = from.tokens.size() * width;
  encode_tokens(from.tokens, vocabulary + 1, out.subspan(header_bytes, used));
  encode_tokens(labels, vocabulary + 1,
                out.subspan(header_bytes + static_cast<std::size_t>(length) * width, used));
}

albert_sample albert_format::read(std::span<const std::byte> from) const {
  const auto count = number_at(from, 0), width = token_bytes(vocabulary + 1);
  albert_sample out;
  out.tokens.resize(count);
  out.labels.resize(count);
  decode_tokens(from.subspan(header_bytes, count * width), vocabulary + 1, out.tokens);
  decode_tokens(
      from.subspan(header_bytes + static_cast<std::size_t>(length) * width, count * width),
      vocabulary + 1, out.labels);
  std::replace(out.labels.begin(), out.labels.end(), token_id{vocabulary}, albert_sample::no_label);
  out.first = number_at(from, 2);
  out.order = std::to_integer<token_id>(from[4]);
  return out;
}

albert_batch albert_batch_of(std::span<const albert_sample> samples, bool equal_weights) {
  std::size_t longest = 1;
  for (const auto& sample : samples) longest = std::max(longest, sample.tokens.size());
  albert_batch out;
  out.shape = {static_cast<std::int64_t>(samples.size()), static_cast<std::int64_t>(longest)};
  out.tokens.assign(out.shape.tokens(), albert_padding);
  out.segments.assign(out.shape.tokens(), 0);
  out.present.assign(out.shape.tokens(), 0.0F);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const auto& sample = samples[s];
    const auto labels = static_cast<std::size_t>(
        std::count_if(sample.labels.begin(), sample.labels.end(),
                      [](token_id label) { return label != albert_sample::no_label; }));
    const auto weight =
        equal_weights || labels == 0 ? 1.0F : static_cast<float>(1.0 / static_cast<double>(labels));
    for (std::size_t t = 0; t < sample.tokens.size(); ++t) {
      const auto at = s * longest + t;
      out.tokens[at] = sample.tokens[t];
      out.segments[at] = t < sample.first ? 0 : 1;
      out.present[at] = 1.0F;
      if (sample.labels[t] == albert_sample::no_label) continue;
      out.places.push_back(static_cast<token_id>(at));
      out.labels.push_back(sample.labels[t]);
      out.weights.push_back(weight);
    }
    if (sample.order != albert_sample::no_label) out.classes.push_back(sample.order);
  }
  SHOAL_CHECK(out.classes.empty() || out.classes.size() == samples.size(),
              "either all samples of a batch have a class, or none");
  return out;
}

} // namespace shoal::learn
