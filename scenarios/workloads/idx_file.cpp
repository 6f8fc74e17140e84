#include "scenarios/workloads/idx_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <filesystem>
#include <memory>

namespace shoal::scenarios {

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 30;

/// gzip's reader passes files that are not packed through.
result<std::vector<unsigned char>> unpacked(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) return failure{fmt::format("{}: cannot be opened", path)};
  std::vector<unsigned char> out;
  unsigned char some[1 << 14];
  while (true) {
    const int count = gzread(file.get(), some, sizeof some);
    if (count < 0) return failure{fmt::format("{}: is damaged", path)};
    if (count == 0) break;
    out.insert(out.end(), some, some + count);
    if (out.size() > most_bytes) return failure{fmt::format("{}: is larger than 1 GiB", path)};
  }
  return out;
}

} // namespace

result<idx_bytes> read_idx(const std::string& path) {
  const auto there = std::filesystem::exists(path) ? path : path + ".gz";
  if (!std::filesystem::exists(there))
    return failure{fmt::format("{}: there is no such file, and no {}.gz", path, path)};
  const auto bytes = unpacked(there);
  if (!bytes) return failure{bytes.error()};
  const auto& all = *bytes;
  constexpr unsigned char unsigned_bytes = 8;
  if (all.size() < 4 || all[0] != 0 || all[1] != 0 || all[2] != unsigned_bytes || all[3] == 0 ||
      all[3] > 4 || all.size() < std::size_t{4} + 4 * all[3])
    return failure{fmt::format("{}: is no IDX file of bytes", there)};
  idx_bytes out;
  std::size_t count = 1, at = 4;
  for (int d = 0; d < all[3]; ++d, at += 4) {
    const std::size_t size = std::size_t{all[at]} << 24 | std::size_t{all[at + 1]} << 16 |
                             std::size_t{all[at + 2]} << 8 | all[at + 3];
    out.dimensions.push_back(size);
    if (size == 0 || size > most_bytes || count > most_bytes / size)
      return failure{fmt::format("{}: has a dimension of {}", there, size)};
    count *= size;
  }
  if (all.size() - at != count)
    return failure{
        fmt::format("{}: has {} values, and its dimensions say {}", there, all.size() - at, count)};
  out.values.assign(all.begin() + static_cast<std::ptrdiff_t>(at), all.end());
  return out;
}

} // namespace shoal::scenarios
