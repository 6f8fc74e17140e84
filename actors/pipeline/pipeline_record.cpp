#include "actors/pipeline/pipeline_record.hpp"

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

namespace shoal::actors {

namespace {

constexpr std::uint64_t most_stages = 4096;

using packed_words = std::vector<std::uint64_t>;
constexpr std::size_t word_bytes = sizeof(packed_words::value_type);

payload packed(const packed_words& in) {
  std::vector<std::byte> bytes(in.size() * word_bytes);
  std::memcpy(bytes.data(), in.data(), bytes.size());
  return payload{std::move(bytes)};
}

/// Nothing if `from` is not of `least` to `most` words.
std::optional<packed_words> unpacked(const payload& from, std::size_t least, std::size_t most) {
  if (from.is_size_only() || from.size() % word_bytes != 0 || from.size() < least * word_bytes ||
      from.size() > most * word_bytes)
    return std::nullopt;
  packed_words out(from.size() / word_bytes);
  std::memcpy(out.data(), from.bytes().data(), from.size());
  return out;
}

} // namespace

payload stage_record::pack() const {
  return packed({stage, epoch, state.high, state.low, counted, busy, moves ? 1U : 0U, content.high,
                 content.low});
}

std::optional<stage_record> stage_record::unpack(const payload& from) {
  const auto in = unpacked(from, 9, 9);
  if (!in || (*in)[0] >= most_stages || (*in)[6] > 1) return std::nullopt;
  return stage_record{static_cast<std::uint32_t>((*in)[0]),
                      (*in)[1],
                      {(*in)[2], (*in)[3]},
                      (*in)[4],
                      (*in)[5],
                      (*in)[6] == 1,
                      {(*in)[7], (*in)[8]}};
}

payload stage_summary::pack() const {
  return packed({stage, epoch, peers, busy});
}

std::optional<stage_summary> stage_summary::unpack(const payload& from) {
  const auto in = unpacked(from, 4, 4);
  if (!in || (*in)[0] >= most_stages) return std::nullopt;
  return stage_summary{static_cast<std::uint32_t>((*in)[0]), (*in)[1], (*in)[2], (*in)[3]};
}

payload trainer_record::pack() const {
  packed_words out{closed, samples, version};
  out.insert(out.end(), open.begin(), open.end());
  return packed(out);
}

std::optional<trainer_record> trainer_record::unpack(const payload& from) {
  constexpr std::size_t fixed = 3; // words before the open stages
  const auto in = unpacked(from, fixed, fixed + most_open_stages);
  if (!in) return std::nullopt;
  trainer_record out{(*in)[0], (*in)[1], (*in)[2], {}};
  for (std::size_t i = fixed; i < in->size(); ++i) {
    if ((*in)[i] >= most_stages) return std::nullopt;
    out.open.insert(static_cast<std::uint32_t>((*in)[i]));
  }
  return out;
}

} // namespace shoal::actors
