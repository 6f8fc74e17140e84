// The pictures that a model drew after each checkpoint, as JSON.
#include "scenarios/observe/epoch_file.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/page/page_text.hpp"
#include "scenarios/page/run_view_state.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_pictures = 24;
constexpr std::uintmax_t most_bytes = 256 * 1024; ///< larger pictures are left out

/// RFC 4648, section 4.
std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    for (std::size_t i = 0; i < 3; ++i)
      three = three << 8 | (at + i < bytes.size() ? static_cast<std::uint8_t>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      out += at + i <= bytes.size() ? digits[three >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

/// The pictures of a folder by their epochs.
std::map<std::uint64_t, fs::path> pictures_in(const fs::path& folder) {
  std::map<std::uint64_t, fs::path> out;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    const auto epoch = epoch_of(entry->path().filename().string(), ".png");
    if (epoch && entry->file_size(unknown) <= most_bytes && !unknown)
      out.emplace(*epoch, entry->path());
  }
  return out;
}

} // namespace

/// With more than a page shows, pictures of evenly spaced checkpoints, the last one among them.
std::string run_view::state::pictures_text() const {
  page_text out;
  out.open('{').key("captions").open('[');
  for (const auto& caption : facts.shown) out.text(caption);
  out.close(']').key("drawn").open('[');
  const auto all = pictures.empty() ? std::map<std::uint64_t, fs::path>{} : pictures_in(pictures);
  const auto every = (all.size() + most_pictures - 1) / most_pictures;
  std::size_t left = all.size();
  for (const auto& [epoch, path] : all) {
    if (--left % every != 0) continue;
    const auto bytes = read_file(path);
    if (!bytes) continue;
    out.open('{').key("epoch").whole(static_cast<std::int64_t>(epoch));
    out.key("png").text("data:image/png;base64," + base64(*bytes)).close('}');
  }
  out.close(']').close('}');
  return out.take();
}

} // namespace shoal::scenarios
