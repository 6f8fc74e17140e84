#include "kernels/learn/text.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/text_file.hpp"

#include <glob.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

namespace shoal::learn {

namespace fs = std::filesystem;

namespace {

struct found_file {
  fs::path path;
  bool named = false; // named by the user, not found through a folder or a glob
};

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

result<std::vector<found_file>> expand(const std::string& pattern) {
  std::vector<found_file> found;
  std::error_code error;
  const auto status = fs::status(pattern, error);
  if (fs::is_directory(status)) {
    fs::directory_iterator entry(pattern, error), end;
    for (; !error && entry != end; entry.increment(error))
      if (std::error_code ignored; fs::is_regular_file(entry->status(ignored)))
        found.push_back({entry->path()});
    if (error) return failure{"data: cannot list " + quoted(pattern) + ": " + error.message()};
    if (found.empty()) return failure{"data: the folder " + quoted(pattern) + " holds no files"};
    return found;
  }
  if (fs::exists(status)) {
    if (!fs::is_regular_file(status))
      return failure{"data: " + quoted(pattern) + " is not a regular file or a folder"};
    found.push_back({pattern, true});
    return found;
  }
  if (pattern.find_first_of("*?[") == std::string::npos)
    return failure{
        "data: there is no file " + quoted(pattern) +
        (error && error != std::errc::no_such_file_or_directory ? ": " + error.message() : "")};
  glob_t matches{};
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0)
    for (std::size_t i = 0; i < matches.gl_pathc; ++i)
      if (fs::is_regular_file(matches.gl_pathv[i], error)) found.push_back({matches.gl_pathv[i]});
  globfree(&matches);
  if (found.empty()) return failure{"data: no file matches " + quoted(pattern)};
  return found;
}

/// The number of windows of `context` predictions in `bytes` bytes.
std::uint64_t whole_windows(std::size_t bytes, std::size_t context) {
  return bytes == 0 ? 0 : (bytes - 1) / context;
}

/// The number of training windows of a file: one less than fit, if more than one fits, to leave
/// room for the drawn offset.
std::uint64_t drawn_windows(std::size_t bytes, std::size_t context) {
  const auto whole = whole_windows(bytes, context);
  return whole >= 2 ? whole - 1 : whole;
}

std::uint64_t mix(std::uint64_t z) { // the finalizer of SplitMix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

} // namespace

std::uint64_t permute(std::uint64_t index, std::uint64_t n, std::uint64_t key) {
  SHOAL_CHECK(index < n, "the index is inside the range that is permuted");
  // A balanced Feistel network over the smallest even number of bits that holds n. It is applied
  // again to a value outside [0, n).
  const int half = std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2);
  const std::uint64_t mask = half >= 32 ? 0xffffffffULL : (std::uint64_t{1} << half) - 1;
  constexpr std::uint64_t rounds = 6;
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (std::uint64_t r = 0; r < rounds; ++r) {
      const std::uint64_t next = left ^ (mix(right + key + (r + 1) * 0x9e3779b97f4a7c15ULL) & mask);
      left = right;
      right = next;
    }
    index = (left << half) | right;
  } while (index >= n);
  return index;
}

std::uint64_t buffered(std::uint64_t index, std::uint64_t n, std::uint64_t size,
                       std::uint64_t key) {
  SHOAL_CHECK(index < n && size > 0, "the index is inside the range that is shuffled");
  // The first buffer has a drawn size, so that the buffers' boundaries differ between passes.
  const auto head = std::min(n, size - mix(key ^ 0x9e3779b97f4a7c15ULL) % size);
  const auto block = index < head ? 0 : 1 + (index - head) / size;
  const auto first = block == 0 ? 0 : head + (block - 1) * size;
  const auto count = std::min(block == 0 ? head : size, n - first);
  return first + permute(index - first, count, mix(key + block));
}

result<text_corpus> text_corpus::load(std::span<const std::string> patterns,
                                      const text_options& options) {
  if (patterns.empty()) return failure{"data: no files were given"};
  std::set<fs::path> seen;
  std::set<digest> contents;
  std::vector<text_file> files;
  std::uint64_t room = options.max_bytes;
  for (const auto& pattern : patterns) {
    auto found = expand(pattern);
    if (!found) return failure{found.error()};
    std::sort(found->begin(), found->end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    for (const auto& [path, named] : *found) {
      std::error_code error;
      const auto real = fs::canonical(path, error);
      if (error)
        return failure{"data: cannot resolve " + quoted(path.string()) + ": " + error.message()};
      if (!seen.insert(real).second) continue;
      auto bytes = read_text_file(real.string(), options.field, room);
      if (!bytes) return failure{bytes.error()};
      if (bytes->empty()) {
        if (named) return failure{"data: the file " + quoted(path.string()) + " is empty"};
        continue;
      }
      if (!contents.insert(hash_of(std::as_bytes(std::span(*bytes)))).second) continue;
      room -= bytes->size();
      files.push_back({real.filename().string(), std::move(*bytes)});
    }
  }
  if (files.empty()) return failure{"data: all files that were found are empty"};
  return from_files(std::move(files), options);
}

result<text_corpus> text_corpus::from_files(std::vector<text_file> files,
                                            const text_options& options) {
  if (options.context < 1 || options.context > 65536)
    return failure{"data: context is " + std::to_string(options.context) +
                   "; it must be from 1 to 65536"};
  if (!(options.holdout > 0 && options.holdout < 1))
    return failure{"data: holdout is a fraction between 0 and 1, both excluded"};
  const auto context = static_cast<std::size_t>(options.context);
  text_corpus corpus;
  corpus.options_ = options;
  corpus.files_ = std::move(files);
  std::sort(corpus.files_.begin(), corpus.files_.end(), [](const text_file& a, const text_file& b) {
    return a.name != b.name ? a.name < b.name : a.bytes < b.bytes;
  });
  hasher all;
  corpus.first_window_.push_back(0);
  for (std::size_t f = 0; f < corpus.files_.size(); ++f) {
    auto& file = corpus.files_[f];
    all.add(std::string_view(file.name))
        .add(std::uint64_t{file.bytes.size()})
        .add(std::as_bytes(std::span(file.bytes)));
    const auto held = static_cast<std::size_t>(
        std::floor(static_cast<double>(file.bytes.size()) * options.holdout));
    file.train_bytes = file.bytes.size() - held;
    corpus.first_window_.push_back(corpus.first_window_.back() +
                                   drawn_windows(file.train_bytes, context));
    for (std::uint64_t w = 0; w < whole_windows(held, context); ++w)
      corpus.held_out_.push_back({f, file.train_bytes + static_cast<std::size_t>(w) * context});
  }
  corpus.digest_ = all.finish();
  const auto total = std::to_string(corpus.total_bytes());
  if (corpus.windows() == 0)
    return failure{"data: " + total + " bytes in " + std::to_string(corpus.files_.size()) +
                   " files hold no training window of " + std::to_string(context + 1) + " bytes"};
  if (corpus.held_out_.empty())
    return failure{"data: the held-out ends of " + std::to_string(corpus.files_.size()) +
                   " files (" + total + " bytes) hold no window of " + std::to_string(context + 1) +
                   " bytes"};
  return corpus;
}

std::size_t text_corpus::total_bytes() const noexcept {
  std::size_t total = 0;
  for (const auto& file : files_) total += file.bytes.size();
  return total;
}

text_corpus::place text_corpus::place_of(std::uint64_t index) const {
  const auto pass = index / windows();
  const auto key = stream(options_.seed, "text_order", pass).next();
  const auto window = options_.shuffle_buffer == 0
                          ? permute(index % windows(), windows(), key)
                          : buffered(index % windows(), windows(), options_.shuffle_buffer, key);
  const auto after = std::upper_bound(first_window_.begin(), first_window_.end(), window);
  const auto file = static_cast<std::size_t>(after - first_window_.begin()) - 1;
  const auto context = static_cast<std::size_t>(options_.context);
  const auto count = first_window_[file + 1] - first_window_[file];
  // The offset keeps all `count` windows inside. It is less than a window, because a window moves
  // the cuts enough.
  const auto slack = files_[file].train_bytes - 1 - static_cast<std::size_t>(count) * context;
  const auto offset =
      stream(options_.seed, "text_offset", pass, file).below(std::min(slack + 1, context));
  return {pass, window, file,
          static_cast<std::size_t>(offset + (window - first_window_[file]) * context)};
}

void text_corpus::sample(std::uint64_t index, std::span<std::byte> out) const {
  SHOAL_CHECK(out.size() == sample_bytes(), "a sample is context + 1 bytes");
  const auto at = place_of(index);
  std::memcpy(out.data(), files_[at.file].bytes.data() + at.offset, out.size());
}

std::vector<std::byte> text_corpus::sample(std::uint64_t index) const {
  std::vector<std::byte> bytes(sample_bytes());
  sample(index, bytes);
  return bytes;
}

std::vector<std::byte> text_corpus::held_out_samples() const {
  std::vector<std::byte> all;
  all.reserve(held_out_.size() * sample_bytes());
  for (const auto& segment : held_out_segments()) {
    const auto bytes = std::as_bytes(segment);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

std::vector<std::byte> text_corpus::held_out_samples(std::uint64_t most) const {
  const auto segments = held_out_segments();
  const auto count = std::min<std::uint64_t>(segments.size(), most);
  std::vector<std::byte> some;
  some.reserve(count * sample_bytes());
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto bytes = std::as_bytes(segments[i * segments.size() / count]);
    some.insert(some.end(), bytes.begin(), bytes.end());
  }
  return some;
}

std::vector<std::span<const std::uint8_t>> text_corpus::train_segments() const {
  std::vector<std::span<const std::uint8_t>> segments;
  for (const auto& file : files_) segments.push_back(file.train());
  return segments;
}

std::vector<std::span<const std::uint8_t>> text_corpus::held_out_segments() const {
  std::vector<std::span<const std::uint8_t>> segments;
  for (const auto& at : held_out_)
    segments.push_back(std::span(files_[at.file].bytes).subspan(at.offset, sample_bytes()));
  return segments;
}

} // namespace shoal::learn
