// Writes messages of Protocol Buffers, field by field. Exports need a few fields of large schemas
// of others, so they name the fields by number and carry no generated code.
// Source: protobuf.dev/programming-guides/encoding.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::scenarios {

class protobuf_message {
public:
  protobuf_message& varint(std::uint32_t field, std::uint64_t value) {
    tag(field, 0);
    base128(value);
    return *this;
  }
  protobuf_message& fixed64(std::uint32_t field, std::uint64_t value) {
    tag(field, 1);
    little_endian(value, 8);
    return *this;
  }
  protobuf_message& real(std::uint32_t field, double value) {
    return fixed64(field, std::bit_cast<std::uint64_t>(value));
  }
  protobuf_message& real32(std::uint32_t field, float value) {
    tag(field, 5);
    little_endian(std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  protobuf_message& bytes(std::uint32_t field, std::string_view value) {
    tag(field, 2);
    base128(value.size());
    text_ += value;
    return *this;
  }
  protobuf_message& inner(std::uint32_t field, const protobuf_message& value) {
    return bytes(field, value.text());
  }
  const std::string& text() const { return text_; }

private:
  void tag(std::uint32_t field, std::uint32_t type) { base128(field << 3 | type); }
  void base128(std::uint64_t value) {
    for (; value >= 128; value >>= 7) text_ += static_cast<char>(value % 128 + 128);
    text_ += static_cast<char>(value);
  }
  void little_endian(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> 8 * i & 255);
  }

  std::string text_;
};

} // namespace shoal::scenarios
