// Reads one file of a text corpus, whatever it is packed in: plain bytes or JSON lines (`.jsonl`),
// of either also zstd (`.zst`) or brotli (`.br`), as the name's endings say. Files are read and
// unpacked in blocks, so that beside the text itself memory holds a block of each and a line: what
// a small file unpacks to is bounded before it is there.
//
// JSON lines: one object in each line that is not blank; the text is one string field of each, and
// the texts follow each other, a newline after each. zstd: several frames may follow each other.
// Errors name the file and where: the offset in the file as it lies on the disk, and of JSON lines
// the line.
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

/// As the endings of `name` say: 'a.jsonl.zst' is JSON lines in zstd; everything else is text.
text_format format_of(const std::string& name);

/// The text of the file at `path`. `field` is that of JSON lines.
/// Errors: it cannot be read, is truncated or corrupt, is no JSON lines, or holds more than
/// `at_most` bytes of text.
result<std::vector<std::uint8_t>> read_text_file(const std::string& path, const std::string& field,
                                                 std::uint64_t at_most);

} // namespace shoal::learn
