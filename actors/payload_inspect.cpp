#include "actors/payload_inspect.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/deserializer.hpp>
#include <caf/detail/serialized_size.hpp>
#include <caf/sec.hpp>
#include <caf/serializer.hpp>

namespace shoal {

namespace {

// A size-only payload takes as many bytes as a real one. The counting serializer only reads the
// size; a real serializer gets zeros.
caf::error write_size_only(caf::serializer& sink, std::size_t size) {
  if (dynamic_cast<caf::detail::serialized_size_inspector*>(&sink) != nullptr)
    return sink.apply_raw(size, nullptr);
  static std::vector<std::byte> zeros(std::size_t{1} << 16);
  while (size > 0) {
    auto piece = std::min(size, zeros.size());
    if (auto err = sink.apply_raw(piece, zeros.data())) return err;
    size -= piece;
  }
  return caf::none;
}

// Marks a size-only payload in the length that is written when a payload_sink takes the payload.
constexpr std::uint32_t size_only_bit = std::uint32_t{1} << 31;

} // namespace

caf::error inspect(caf::serializer& sink, payload& x) {
  if (x.size() >= beside_bytes)
    if (auto* beside = dynamic_cast<payload_sink*>(&sink)) {
      auto size = static_cast<std::uint32_t>(x.size()) | (x.is_size_only() ? size_only_bit : 0);
      if (auto err = sink(size)) return err;
      beside->take(x);
      return caf::none;
    }
  auto size = static_cast<std::uint32_t>(x.size());
  if (auto err = sink(size)) return err;
  if (x.empty()) return caf::none;
  if (x.is_size_only()) return write_size_only(sink, x.size());
  // The serializer only reads. Its signature takes a pointer that is not const.
  return sink.apply_raw(x.size(), const_cast<std::byte*>(x.bytes().data()));
}

caf::error inspect(caf::deserializer& source, payload& x) {
  std::uint32_t size = 0;
  if (auto err = source(size)) return err;
  if (const auto length = size & ~size_only_bit;
      length >= beside_bytes && length <= max_payload_bytes)
    if (auto* beside = dynamic_cast<payload_source*>(&source))
      return beside->give(length, (size & size_only_bit) != 0, x)
                 ? caf::none
                 : caf::make_error(caf::sec::end_of_stream);
  if (size > max_payload_bytes)
    return caf::make_error(caf::sec::invalid_argument, "payload too large");
  if (auto* binary = dynamic_cast<caf::binary_deserializer*>(&source);
      binary && binary->remaining() < size)
    return caf::make_error(caf::sec::end_of_stream);
  std::vector<std::byte> bytes(size);
  if (size > 0)
    if (auto err = source.apply_raw(size, bytes.data())) return err;
  x = payload{std::move(bytes)};
  return caf::none;
}

std::string to_string(const payload& x) {
  return "payload(" + std::to_string(x.size()) + " B)";
}

} // namespace shoal
