// Text in the form that an SVG file allows.
#pragma once

#include <string>
#include <string_view>

namespace shoal::tools {

/// Escapes the text, and removes control characters, which XML does not allow.
inline std::string svg_text(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  return out;
}

} // namespace shoal::tools
