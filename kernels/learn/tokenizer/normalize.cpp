#include "kernels/learn/tokenizer/normalize.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/tokenizer/unicode.hpp"

namespace shoal::learn {

namespace {

/// Writes `text` with some code points replaced. `what(value)` gives the code point itself, another
/// one, or `dropped`.
constexpr char32_t dropped = 0xffffffff;

template <class What>
std::string mapped(std::string_view text, What what) {
  std::string out;
  out.reserve(text.size());
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto one = unicode::first_of(text.substr(at));
    const char32_t now = what(one.value);
    if (now != one.value || !one.valid) {
      out.append(text.substr(copied, at - copied));
      copied = at + one.bytes;
      if (now != dropped) unicode::append(out, now);
    }
    at += one.bytes;
  }
  return out.append(text.substr(copied));
}

char32_t nmt(char32_t c) {
  if (c >= 0x20 && c < 0x7f) return c;
  switch (c) {
  case 0x09:
  case 0x0a:
  case 0x0c:
  case 0x0d:
  case 0x1680:
  case 0x200b:
  case 0x200c:
  case 0x200d:
  case 0x200e:
  case 0x200f:
  case 0x2028:
  case 0x2029:
  case 0x2581:
  case 0xfeff:
  case 0xfffd:
    return ' ';
  case 0x0b:
  case 0x7f:
  case 0x8f:
  case 0x9f:
    return dropped;
  default:
    return (c >= 0x01 && c <= 0x08) || (c >= 0x0e && c <= 0x1f) ? dropped : c;
  }
}

std::string replaced(std::string_view text, std::string_view pattern, std::string_view content) {
  SHOAL_CHECK(!pattern.empty(), "a pattern has something to find");
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const auto at = text.find(pattern);
    if (at == std::string_view::npos) return out.append(text);
    out.append(text.substr(0, at)).append(content);
    text.remove_prefix(at + pattern.size());
  }
}

std::string without_space_runs(std::string_view text, std::string_view content) {
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const auto at = text.find("  ");
    if (at == std::string_view::npos) return out.append(text);
    out.append(text.substr(0, at)).append(content);
    const auto next = text.find_first_not_of(' ', at);
    if (next == std::string_view::npos) return out;
    text.remove_prefix(next);
  }
}

bool bengali_ends(std::string_view text) {
  // U+0980 to U+09FF are E0 A6 80 to E0 A7 BF.
  if (text.size() < 3) return false;
  const auto byte = [&](std::size_t from_end) {
    return static_cast<unsigned char>(text[text.size() - from_end]);
  };
  return byte(3) == 0xe0 && (byte(2) == 0xa6 || byte(2) == 0xa7);
}

std::string without_colons(std::string_view text, std::string_view content) {
  std::string out;
  out.reserve(text.size());
  std::size_t copied = 0;
  for (auto at = text.find(':'); at != std::string_view::npos; at = text.find(':', at + 1)) {
    if (!bengali_ends(text.substr(0, at))) continue;
    out.append(text.substr(copied, at - copied)).append(content);
    copied = at + 1;
  }
  return out.append(text.substr(copied));
}

std::string after(std::string_view text, const normalizer_step& step) {
  using enum normalizer_kind;
  switch (step.kind) {
  case nmt:
    return mapped(text, learn::nmt);
  case nfc:
    return unicode::normalized(text, unicode::form::nfc);
  case nfd:
    return unicode::normalized(text, unicode::form::nfd);
  case nfkc:
    return unicode::normalized(text, unicode::form::nfkc);
  case nfkd:
    return unicode::normalized(text, unicode::form::nfkd);
  case lowercase:
    return unicode::lower(text);
  case replace:
    return replaced(text, step.pattern, step.content);
  case replace_space_runs:
    return without_space_runs(text, step.content);
  case replace_colon:
    return without_colons(text, step.content);
  case prepend:
    return text.empty() ? std::string() : step.content + std::string(text);
  }
  return std::string(text);
}

} // namespace

std::string normalize(std::string_view text, std::span<const normalizer_step> steps) {
  if (steps.empty()) return std::string(text);
  std::string out =
      unicode::is_valid(text) ? std::string(text) : mapped(text, [](char32_t c) { return c; });
  for (const auto& step : steps) out = after(out, step);
  return out;
}

} // namespace shoal::learn
