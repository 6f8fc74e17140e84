#include "scenarios/inference/text_stream.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <utility>

namespace shoal::scenarios {

namespace {

/// The length of the character that begins at `at`, or 0 if no character does. The end of the bytes
/// may cut the character off.
std::size_t character_at(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const auto lead = byte(at);
  std::size_t length = 0;
  unsigned low = 0x80, high = 0xBF; // the range of the second byte
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F; // no surrogates
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t i = 1; i < length; ++i) {
    if (at + i == bytes.size()) return length;
    if (byte(at + i) < low || byte(at + i) > high) return 0;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

} // namespace

std::size_t whole_characters(std::string_view bytes) {
  // The last character has at most 4 bytes.
  for (std::size_t at = bytes.size() - std::min<std::size_t>(bytes.size(), 3); at < bytes.size();
       ++at)
    if (character_at(bytes, at) > bytes.size() - at) return at;
  return bytes.size();
}

std::string as_utf8(std::string_view bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = character_at(bytes, at);
    if (length == 0 || length > bytes.size() - at) {
      out += "\xEF\xBF\xBD";
      ++at;
    } else {
      out += bytes.substr(at, length);
      at += length;
    }
  }
  return out;
}

std::string for_terminal(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // The control characters from U+0080 to U+009F are C2 80 to C2 9F.
    if (c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      ++i;
      continue;
    }
    if ((c >= 0x20 && c != 0x7F) || c == '\n' || c == '\t') out += text[i];
  }
  return out;
}

text_stream::text_stream(const learn::text_codec& codec, std::vector<learn::token_id> prompt,
                         std::vector<std::string> stops)
    : codec_(codec), tokens_(std::move(prompt)), stops_(std::move(stops)),
      before_(codec_.decode(tokens_).size()) {
  for (const auto& stop : stops_) SHOAL_CHECK(!stop.empty(), "a stop text has characters");
}

std::string text_stream::give_out(std::size_t to) {
  const auto from = std::exchange(given_, std::max(to, given_));
  return as_utf8(std::string_view(bytes_).substr(from, given_ - from));
}

std::string text_stream::push(learn::token_id next) {
  if (stopped_) return {};
  tokens_.push_back(next);
  const auto all = codec_.decode(tokens_);
  bytes_ = all.substr(std::min(before_, all.size()));
  auto first = std::string::npos;
  for (const auto& stop : stops_) first = std::min(first, bytes_.find(stop, given_));
  if (first != std::string::npos) {
    stopped_ = true;
    return give_out(first);
  }
  // Hold back the longest end that may be the beginning of a stop.
  std::size_t held = 0;
  for (const auto& stop : stops_)
    for (auto n = std::min(stop.size() - 1, bytes_.size() - given_); n > held; --n)
      if (std::string_view(bytes_).ends_with(std::string_view(stop).substr(0, n))) held = n;
  const std::string_view free(bytes_.data(), bytes_.size() - held);
  return give_out(whole_characters(free));
}

std::string text_stream::end() {
  return stopped_ ? std::string{} : give_out(bytes_.size());
}

} // namespace shoal::scenarios
