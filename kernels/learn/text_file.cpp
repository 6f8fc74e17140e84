#include "kernels/learn/text_file.hpp"

#include "kernels/base/json_text.hpp"

#include <brotli/decode.h>
#include <nlohmann/json.hpp>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

namespace shoal::learn {

namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 16;
/// A frame with a larger window is refused, because the whole window would be in memory.
constexpr int most_window_log = 27;
constexpr std::size_t most_line_bytes = std::size_t{1} << 26;

bool ends_with(std::string& name, const char* ending) {
  if (!name.ends_with(ending)) return false;
  name.resize(name.size() - std::strlen(ending));
  return true;
}

struct zstd_end {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};
struct brotli_end {
  void operator()(BrotliDecoderState* stream) const { BrotliDecoderDestroyInstance(stream); }
};

/// The receiver of unpacked bytes, piece by piece. Returning false ends the reading.
class text_sink {
public:
  text_sink(bool json_lines, std::string field, std::uint64_t at_most)
      : json_lines_(json_lines), field_(std::move(field)), at_most_(at_most) {}

  std::optional<std::string> add(std::span<const std::uint8_t> bytes) {
    if (!json_lines_) return append(bytes);
    while (!bytes.empty()) {
      const auto end = std::find(bytes.begin(), bytes.end(), std::uint8_t{'\n'});
      const auto count = static_cast<std::size_t>(end - bytes.begin());
      line_.append(reinterpret_cast<const char*>(bytes.data()), count);
      if (line_.size() > most_line_bytes)
        return "line " + std::to_string(number_ + 1) + " is longer than 64 MiB";
      if (end == bytes.end()) return {};
      if (auto wrong = end_line()) return wrong;
      bytes = bytes.subspan(count + 1);
    }
    return {};
  }

  /// The file is over.
  std::optional<std::string> finish() { return json_lines_ ? end_line() : std::nullopt; }
  std::vector<std::uint8_t> take() { return std::move(text_); }

private:
  std::optional<std::string> append(std::span<const std::uint8_t> bytes) {
    if (bytes.size() > at_most_ - text_.size())
      return "with this file the corpus is larger than its limit of bytes";
    text_.insert(text_.end(), bytes.begin(), bytes.end());
    return {};
  }

  std::optional<std::string> end_line() {
    ++number_;
    const auto line = std::exchange(line_, {});
    if (line.find_first_not_of(" \t\r") == std::string::npos) return {};
    const auto where = "line " + std::to_string(number_);
    const auto object = try_json<nlohmann::json>(line);
    if (object.is_discarded() || !object.is_object()) return where + " is no JSON object";
    const auto found = object.find(field_);
    if (found == object.end()) return where + " has no field '" + field_ + "'";
    if (!found->is_string()) return "the field '" + field_ + "' of " + where + " is no text";
    const auto& text = found->get_ref<const std::string&>();
    if (auto wrong = append({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}))
      return wrong;
    const std::uint8_t newline = '\n';
    return append({&newline, 1});
  }

  bool json_lines_;
  std::string field_;
  std::uint64_t at_most_;
  std::string line_;
  std::size_t number_ = 0;
  std::vector<std::uint8_t> text_;
};

/// Unpacks bytes into a sink.
class unpacker {
public:
  virtual ~unpacker() = default;
  /// Unpacks `in`. On an error, `used` is the number of bytes of `in` before it.
  virtual std::optional<std::string> add(std::span<const std::uint8_t> in, std::size_t& used,
                                         text_sink& to) = 0;
  /// Whether the file may end here.
  virtual bool complete() const = 0;
};

class plain final : public unpacker {
public:
  std::optional<std::string> add(std::span<const std::uint8_t> in, std::size_t& used,
                                 text_sink& to) override {
    used = in.size();
    return to.add(in);
  }
  bool complete() const override { return true; }
};

class zstd_frames final : public unpacker {
public:
  zstd_frames() : stream_(ZSTD_createDStream()), out_(block_bytes) {
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, most_window_log);
  }

  std::optional<std::string> add(std::span<const std::uint8_t> in, std::size_t& used,
                                 text_sink& to) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    bool full = true;
    while (from.pos < from.size || full) {
      ZSTD_outBuffer piece{out_.data(), out_.size(), 0};
      const auto left = ZSTD_decompressStream(stream_.get(), &piece, &from);
      used = from.pos;
      if (ZSTD_isError(left)) return std::string("corrupt zstd data: ") + ZSTD_getErrorName(left);
      open_ = left != 0;
      full = piece.pos == piece.size;
      if (auto wrong = to.add({out_.data(), piece.pos})) return wrong;
      if (!open_ && from.pos == from.size) return {};
    }
    return {};
  }
  bool complete() const override { return !open_; }

private:
  std::unique_ptr<ZSTD_DStream, zstd_end> stream_;
  std::vector<std::uint8_t> out_;
  bool open_ = true; // no frame has ended
};

class brotli_stream final : public unpacker {
public:
  brotli_stream()
      : stream_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)), out_(block_bytes) {}

  std::optional<std::string> add(std::span<const std::uint8_t> in, std::size_t& used,
                                 text_sink& to) override {
    const std::uint8_t* next = in.data();
    std::size_t left = in.size();
    for (;;) {
      if (done_ && left > 0) {
        used = in.size() - left;
        return "bytes behind the end of the brotli data";
      }
      if (done_) return {};
      std::uint8_t* out = out_.data();
      std::size_t room = out_.size();
      const auto said =
          BrotliDecoderDecompressStream(stream_.get(), &left, &next, &room, &out, nullptr);
      used = in.size() - left;
      if (said == BROTLI_DECODER_RESULT_ERROR)
        return std::string("corrupt brotli data: ") +
               BrotliDecoderErrorString(BrotliDecoderGetErrorCode(stream_.get()));
      if (auto wrong = to.add({out_.data(), out_.size() - room})) return wrong;
      done_ = said == BROTLI_DECODER_RESULT_SUCCESS;
      if (said == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) return {};
    }
  }
  bool complete() const override { return done_; }

private:
  std::unique_ptr<BrotliDecoderState, brotli_end> stream_;
  std::vector<std::uint8_t> out_;
  bool done_ = false;
};

std::unique_ptr<unpacker> unpacker_of(text_format::packing packed) {
  switch (packed) {
  case text_format::packing::zstd:
    return std::make_unique<zstd_frames>();
  case text_format::packing::brotli:
    return std::make_unique<brotli_stream>();
  default:
    return std::make_unique<plain>();
  }
}

} // namespace

text_format format_of(const std::string& name) {
  text_format out;
  auto rest = name;
  if (ends_with(rest, ".zst"))
    out.packed = text_format::packing::zstd;
  else if (ends_with(rest, ".br"))
    out.packed = text_format::packing::brotli;
  out.json_lines = ends_with(rest, ".jsonl");
  return out;
}

result<std::vector<std::uint8_t>> read_text_file(const std::string& path, const std::string& field,
                                                 std::uint64_t at_most) {
  const auto format = format_of(path);
  const auto named = "data: '" + path + "': ";
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return failure{named + "cannot be opened: " + std::strerror(errno)};
  text_sink sink(format.json_lines, field, at_most);
  const auto unpack = unpacker_of(format.packed);
  std::vector<std::uint8_t> block(block_bytes);
  std::uint64_t offset = 0;
  const auto at = [](std::uint64_t where) {
    return " (at byte " + std::to_string(where) + " of the file)";
  };
  for (;;) {
    in.read(reinterpret_cast<char*>(block.data()), static_cast<std::streamsize>(block.size()));
    const auto count = static_cast<std::size_t>(in.gcount());
    if (in.bad()) return failure{named + "cannot be read" + at(offset)};
    if (count == 0) break;
    std::size_t used = 0;
    if (auto wrong = unpack->add({block.data(), count}, used, sink))
      return failure{named + *wrong + at(offset + used)};
    offset += count;
  }
  // An empty file is empty text, in every format. The corpus reports it if the user named it.
  if (offset > 0 && !unpack->complete())
    return failure{
        named + "is truncated: it ends in the middle of its compressed data; get or pack it again" +
        at(offset)};
  if (auto wrong = sink.finish())
    return failure{named + *wrong + (format.json_lines ? " (is the file truncated?)" : "") +
                   at(offset)};
  return sink.take();
}

} // namespace shoal::learn
