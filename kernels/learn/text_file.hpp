// Reads one file of a text corpus. The endings of its name give its format: plain bytes or JSON
// lines (`.jsonl`), either of them also packed by zstd (`.zst`) or brotli (`.br`). Files are read
// and unpacked in blocks. Beside the text itself, memory holds one block of each and a line. So a
// small file that unpacks to a huge text is refused before the text is in memory.
//
// JSON lines have one object in each line that is not blank. The text is one string field of each
// object, with a newline after each. A zstd file may have several frames. Errors name the file and
// the offset in the file on disk, and for JSON lines also the line.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shoal::learn {

struct text_format {
  enum class packing : std::uint8_t { none, zstd, brotli };
  packing packed = packing::none;
  bool json_lines = false;
  bool operator==(const text_format&) const = default;
};

/// The format by the endings of `name`: 'a.jsonl.zst' is JSON lines in zstd. Other names are plain
/// text.
text_format format_of(const std::string& name);

/// The text of the file at `path`. `field` is the field of JSON lines.
/// Errors: the file cannot be read, is truncated or corrupt, is no JSON lines, or holds more than
/// `at_most` bytes of text.
result<std::vector<std::uint8_t>> read_text_file(const std::string& path, const std::string& field,
                                                 std::uint64_t at_most);

} // namespace shoal::learn
