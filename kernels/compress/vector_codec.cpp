#include "kernels/compress/vector_codec.hpp"

#include "kernels/base/check.hpp"
#include "kernels/compress/top_k.hpp"
#include "kernels/compress/wire.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::kernels {

vector_codec::vector_codec(codec which, std::span<const std::uint64_t> tensors, double fraction)
    : which_(which), fraction_(fraction) {
  SHOAL_CHECK(fraction > 0 && fraction <= 1, "top_k keeps a fraction from above 0 to 1");
  constexpr auto no_end = std::numeric_limits<std::uint64_t>::max();
  if (which != codec::size_adaptive || tensors.empty()) {
    // A single tensor of unknown size counts as large: small models name their tensors.
    runs_.push_back({no_end, which == codec::size_adaptive
                                 ? codec_for(which, size_adaptive_threshold)
                                 : which});
    return;
  }
  std::uint64_t end = 0;
  for (const auto size : tensors) {
    end += size;
    const codec how = codec_for(which, size);
    if (!runs_.empty() && runs_.back().how == how)
      runs_.back().end = end;
    else
      runs_.push_back({end, how});
  }
  runs_.back().end = no_end;
}

template <class F>
void vector_codec::for_runs(std::uint64_t begin, std::size_t n, F what) const {
  auto at = std::upper_bound(runs_.begin(), runs_.end(), begin,
                             [](std::uint64_t value, const run& r) { return value < r.end; });
  std::size_t done = 0;
  while (done < n) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(n - done, at->end - (begin + done)));
    if (!what(at->how, done, count)) return;
    done += count;
    ++at;
  }
}

std::size_t vector_codec::kept(std::size_t n) const {
  return std::min(n, std::max<std::size_t>(1, static_cast<std::size_t>(
                                                  std::ceil(fraction_ * static_cast<double>(n)))));
}

bool vector_codec::fits(std::uint64_t begin, std::size_t n, std::size_t bytes) const {
  if (which_ != codec::top_k) return bytes == this->bytes(begin, n);
  return bytes % top_k_bytes(1) == 0 && bytes <= top_k_bytes(n) && (bytes > 0 || n == 0);
}

std::size_t vector_codec::bytes(std::uint64_t begin, std::size_t n) const {
  if (which_ == codec::top_k) return top_k_bytes(kept(n));
  std::size_t out = 0;
  for_runs(begin, n, [&](codec how, std::size_t, std::size_t count) {
    out += encoded_bytes(how, count);
    return true;
  });
  return out;
}

result<std::vector<std::byte>> vector_codec::encode(std::uint64_t begin,
                                                    std::span<const float> x) const {
  std::vector<std::byte> out(bytes(begin, x.size()));
  if (which_ == codec::top_k) {
    if (auto kept = encode_top_k(x, out.size() / top_k_bytes(1), out); !kept)
      return failure{kept.error()};
    return out;
  }
  std::size_t at = 0;
  result<void> done;
  for_runs(begin, x.size(), [&](codec how, std::size_t first, std::size_t count) {
    const auto size = encoded_bytes(how, count);
    done = encode_into(how, x.subspan(first, count), std::span(out).subspan(at, size));
    at += size;
    return static_cast<bool>(done);
  });
  if (!done) return failure{done.error()};
  return out;
}

result<void> vector_codec::decode(std::uint64_t begin, std::span<const std::byte> from,
                                  std::span<float> out) const {
  if (which_ == codec::top_k) return decode_top_k(from, out);
  const auto needed = bytes(begin, out.size());
  if (from.size() != needed) return wrong_length(from.size(), needed, out.size());
  std::size_t at = 0;
  result<void> done;
  for_runs(begin, out.size(), [&](codec how, std::size_t first, std::size_t count) {
    const auto size = encoded_bytes(how, count);
    done = kernels::decode(how, from.subspan(at, size), out.subspan(first, count));
    at += size;
    return static_cast<bool>(done);
  });
  return done;
}

} // namespace shoal::kernels
