#include "actors/pipeline/pipeline_record.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

namespace shoal::actors {

namespace {

constexpr std::uint64_t most_stages = 4096;

template <std::size_t N>
payload packed(const std::array<std::uint64_t, N>& words) {
  std::vector<std::byte> bytes(sizeof words);
  std::memcpy(bytes.data(), words.data(), sizeof words);
  return payload{std::move(bytes)};
}

template <std::size_t N>
std::optional<std::array<std::uint64_t, N>> unpacked(const payload& from) {
  std::array<std::uint64_t, N> out;
  if (from.is_size_only() || from.size() != sizeof out) return std::nullopt;
  std::memcpy(out.data(), from.bytes().data(), sizeof out);
  return out;
}

} // namespace

payload stage_record::pack() const {
  return packed(std::array<std::uint64_t, 7>{stage, epoch, state.high, state.low, counted, busy,
                                             moves ? 1U : 0U});
}

std::optional<stage_record> stage_record::unpack(const payload& from) {
  const auto in = unpacked<7>(from);
  if (!in || (*in)[0] >= most_stages || (*in)[6] > 1) return std::nullopt;
  return stage_record{static_cast<std::uint32_t>((*in)[0]),
                      (*in)[1],
                      {(*in)[2], (*in)[3]},
                      (*in)[4],
                      (*in)[5],
                      (*in)[6] == 1};
}

payload stage_summary::pack() const {
  return packed(std::array<std::uint64_t, 4>{stage, epoch, peers, busy});
}

std::optional<stage_summary> stage_summary::unpack(const payload& from) {
  const auto in = unpacked<4>(from);
  if (!in || (*in)[0] >= most_stages) return std::nullopt;
  return stage_summary{static_cast<std::uint32_t>((*in)[0]), (*in)[1], (*in)[2], (*in)[3]};
}

payload trainer_record::pack() const {
  std::vector<std::uint64_t> words{closed, samples, version};
  words.insert(words.end(), open.begin(), open.end());
  std::vector<std::byte> bytes(words.size() * sizeof words[0]);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return payload{std::move(bytes)};
}

std::optional<trainer_record> trainer_record::unpack(const payload& from) {
  constexpr std::size_t word = sizeof(std::uint64_t), least = 3;
  if (from.is_size_only() || from.size() % word != 0 || from.size() / word < least ||
      from.size() / word > least + most_open_stages)
    return std::nullopt;
  std::vector<std::uint64_t> in(from.size() / word);
  std::memcpy(in.data(), from.bytes().data(), from.size());
  trainer_record out{in[0], in[1], in[2], {}};
  for (std::size_t i = least; i < in.size(); ++i) {
    if (in[i] >= most_stages) return std::nullopt;
    out.open.insert(static_cast<std::uint32_t>(in[i]));
  }
  return out;
}

} // namespace shoal::actors
