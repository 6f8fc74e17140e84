// Text for readers, from tokens as they come. A piece is given out when nothing can change it: it
// ends between two characters, and a stop text cannot begin in it.
// Pieces are valid UTF-8; other bytes become U+FFFD.
#pragma once

#include "kernels/learn/text_codec.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

class text_stream {
public:
  /// The pieces follow the text of `prompt`. A text of `stops` ends the text, and is not part of
  /// it; none is empty. Requires: `codec` outlives this object.
  text_stream(const learn::text_codec& codec, std::vector<learn::token_id> prompt,
              std::vector<std::string> stops = {});

  /// The piece that is certain after one more token; may be empty. Empty after a stop.
  std::string push(learn::token_id next);
  /// The rest, when no token follows.
  std::string end();
  /// Whether a stop text has ended the text.
  bool stopped() const noexcept { return stopped_; }

private:
  std::string give_out(std::size_t to);

  const learn::text_codec& codec_;
  std::vector<learn::token_id> tokens_;
  std::vector<std::string> stops_;
  std::string bytes_; // after the prompt
  std::size_t before_ = 0, given_ = 0;
  bool stopped_ = false;
};

/// The longest beginning of `bytes` that ends between two characters. Bytes that are not UTF-8
/// count as characters.
std::size_t whole_characters(std::string_view bytes);
/// `bytes` as UTF-8, with U+FFFD for each byte that is not part of a character.
std::string as_utf8(std::string_view bytes);
/// `text` without control characters except line feeds and tabs, for a terminal.
std::string for_terminal(std::string_view text);

} // namespace shoal::scenarios
